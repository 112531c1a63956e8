"""The table of releases fits the terminal, one line for each release."""

import io

import pytest
import rich.console

from lib.lab.osdpl import view

RELEASES = {
    "openstack-mariadb": "database",
    "openstack-openvswitch": "networking",
    "openstack-memcached": "memcached",
    "etcd": "coordination",
    "openstack-placement": "placement",
}
WAITING = (
    "StatefulSet mariadb-server, StatefulSet openstack-rabbitmq-rabbitmq,"
    " Deployment keystone-api"
)


def rows() -> tuple[view.Row, ...]:
    pods = (view.WorkloadView("Deployment", "a", "r", 3, 3, True),) * 11
    return tuple(
        view.Row(
            service=service,
            release=release,
            chart=f"openstack-helm/{release} 2026.1.0",
            revision=12,
            state="pending-upgrade",
            workloads=pods,
            waiting_for=WAITING,
        )
        for release, service in RELEASES.items()
    )


def shown(width: int) -> list[str]:
    """Return the lines of the table, as they are written to a file."""
    file = io.StringIO()
    console = rich.console.Console(file=file, width=width)
    console.print(view.table(view.ReleaseView(rows(), (), ""), "after 5 s", width))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, view.WIDE - 1])
def test_a_narrow_table_has_one_line_per_release(width: int) -> None:
    lines = shown(width)
    print("\n".join(lines))
    assert max(map(len, lines)) <= width
    for release, service in RELEASES.items():
        (line,) = (line for line in lines if f" {release} " in line)
        assert line.startswith(service)
        for cell in ("12", "pending-upgrade", "11/11", "mariadb-server"):
            assert cell in line
    assert len([line for line in lines if "pending-upgrade" in line]) == len(RELEASES)


def test_a_wide_table_shows_charts_and_all_that_is_waited_for() -> None:
    lines = shown(240)
    assert max(map(len, lines)) <= 240
    for release in RELEASES:
        (line,) = (line for line in lines if f" {release} " in line)
        assert f"openstack-helm/{release} 2026.1.0" in line
        assert WAITING in line


def test_a_table_of_the_least_wide_terminal_breaks_only_what_is_waited_for() -> None:
    text = "\n".join(shown(view.WIDE))
    for release in RELEASES:
        assert f"openstack-helm/{release} 2026.1.0" in text
    assert "keystone-api" in text


def test_the_summary_counts_complete_releases() -> None:
    done = view.Row("s", "r", "c", 1, "deployed", (), "")
    observed = view.ReleaseView((*rows(), done), (), "")
    assert view.summary(observed) == "1 of 6 releases are deployed and Ready"
