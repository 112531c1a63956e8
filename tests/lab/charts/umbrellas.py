"""Umbrella charts: rendered, installed, changed, rolled back and removed by helm."""

import contextlib
import dataclasses
import functools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import pytest

from lib.kube import resources
from lib.lab import errors
from lib.lab.charts import charts
from lib.lab.kube import control_plane
from lib.lab.run import processes, progress
from tests.harness import testing
from tests.lab.charts import installing

SERVERS: Mapping[str, Sequence[str]] = {
    "1.36": (),
    "1.33": ("--emulated-version=1.33", "--min-compatibility-version=1.33"),
}
NOT_STORED = "csi-controller.csiDriver.nodeAllocatableUpdatePeriodSeconds=0"
"""For an emulated server: helm reads the program's version; the field is dropped."""
SECOND = "second"
"""A release of the same chart."""
PROXY_MISTAKES = (
    (
        "proxy without scheme",
        "global.proxy.httpsProxy=proxy:3128",
        "'/global/proxy/httpsProxy'",
    ),
    (
        "password of a proxy",
        "global.proxy.httpsProxy=http://u:s3cret@proxy:3128",
        "proxy.httpsProxy: invalid value [redacted]: must be a URL without user name",
    ),
)
"""In the table of each umbrella chart."""
VERSIONS = testing.by_tier(("1.36",), tuple(SERVERS))


@dataclasses.dataclass(frozen=True, slots=True)
class Mistake:
    """title: what is wrong. setting: for --set. named: what helm must name."""

    title: str
    setting: str
    named: str


def release(
    ground: installing.Ground, case: installing.Case, home: str
) -> installing.Release:
    """Return a release of an umbrella chart."""
    return installing.prepare(ground, case, home)


def mistakes_are_rejected(
    ground: installing.Ground,
    case: installing.Case,
    mistakes: Sequence[Mistake],
    *more: str,
) -> None:
    """By helm install, which names the field; prints the table. more: its arguments."""
    before = installing.until(ground.everything)
    folder = charts.folder(installing.ROOT, case.chart)
    wrong = []
    for mistake in mistakes:
        place = ("--namespace", case.home, *more)
        try:
            ground.helm(
                "install",
                case.chart,
                folder,
                *place,
                "--skip-crds",
                "--set",
                mistake.setting,
            )
            message = "installed"
        except errors.LabError as error:
            message = " ".join(str(error).split())
        print(f"{mistake.title:32} {message[-150:]}")
        if mistake.named not in message:
            wrong.append((mistake, message))
    assert wrong == []
    assert len(mistakes) >= 20
    assert installing.until(ground.everything) == before


def a_missing_kind_is_reported(
    ground: installing.Ground, case: installing.Case
) -> None:
    """A CRD of others that is missing, or too old to have the version."""
    before = installing.until(ground.everything)
    production = charts.of(case.chart)["production"]
    deployed = release(ground, case, case.home)
    with pytest.raises(errors.LabError, match='kind "VerticalPodAutoscaler"'):
        deployed.run("install", production, "--skip-crds")
    assert installing.until(ground.everything) == before


def changed_rolled_back_and_removed(
    ground: installing.Ground,
    case: installing.Case,
    sets: Sequence[str],
    version: str,
) -> None:
    """Every object is stored as it was rendered; a second release is rejected.

    sets: of values: install, then upgrades; then rollbacks to each of them.
    """
    with _served(ground, version):
        _changed_rolled_back_and_removed(ground, case, sets, version)


@contextlib.contextmanager
def _served(ground: installing.Ground, version: str) -> Iterator[None]:
    """Serve the version, and afterwards that of the program again."""
    if SERVERS[version]:
        _restart(ground, SERVERS[version])
    served = installing.until(lambda: ground.get("/version"))
    minor = served.get("emulationMinor") or served["minor"]
    assert f"1.{minor}" == version
    try:
        yield
    finally:
        if SERVERS[version]:
            _restart(ground, ())
            installing.until(lambda: ground.get("/version"))


def _restart(ground: installing.Ground, arguments: Sequence[str]) -> None:
    processes.stop(ground.where, ["kube-apiserver"], patience_s=0.5)
    shown = progress.Lines(sys.stderr)
    control_plane.up(ground.where, shown, api_arguments=arguments)


def _changed_rolled_back_and_removed(
    ground: installing.Ground,
    case: installing.Case,
    sets: Sequence[str],
    version: str,
) -> None:
    before = installing.until(ground.everything)
    deployed = release(ground, case, case.home)
    names: dict[int, set[installing.Name]] = {}
    for revision, name in enumerate(sets, 1):
        verb = "install" if revision == 1 else "upgrade"
        more = ("--set", NOT_STORED) if SERVERS[version] else ()
        deployed.run(verb, charts.of(case.chart)[name], *more)
        names[revision] = deployed.check()
    for revision in range(len(sets) - 1, 0, -1):
        place = ("--namespace", case.home)
        ground.helm("rollback", case.chart, str(revision), *place)
        assert deployed.check() == names[revision]
        others = set.union(*names.values()) - names[revision]
        installing.until_none(functools.partial(_remaining, ground, others))
    print(f"{version}: {[len(rows) for rows in names.values()]} objects")
    _assert_second_release_is_rejected(ground, case, sets[0])
    deployed.uninstall(before)


def _remaining(
    ground: installing.Ground, names: set[installing.Name]
) -> set[installing.Name]:
    """Return those of some objects that still exist."""
    return names & ground.everything()


def _assert_second_release_is_rejected(
    ground: installing.Ground, case: installing.Case, name: str
) -> None:
    """By helm, or by the chart, which also `--take-ownership` cannot move."""
    before = installing.until(ground.everything)
    values = ("--values", str(charts.of(case.chart)[name].values(installing.ROOT)))
    elsewhere = f'must be "{case.home}", where the release {case.chart} has the '
    for title, home, more, named in (
        ("another name", case.home, (), f'current value is "{case.chart}"'),
        ("another namespace", charts.PLATFORM, (), elsewhere),
        ("the same, adopting", charts.PLATFORM, ("--take-ownership",), elsewhere),
    ):
        with pytest.raises(errors.LabError) as caught:
            install(ground, case, SECOND, "--namespace", home, *values, *more)
        message = " ".join(str(caught.value).split())
        print(f"{title:20} {message[-190:]}")
        assert named in message
    # helm keeps a record of a release that it rejects itself.
    records = installing.until(ground.everything) - before
    assert {kind for kind, _, _ in records} <= {"Secret"}
    assert {home for _, home, _ in records} <= {case.home}
    remove_records(ground, case.home, SECOND)
    assert installing.until(ground.everything) == before


def install(
    ground: installing.Ground, case: installing.Case, name: str, *more: str
) -> None:
    """Install the chart as a release of another name. more: arguments of helm."""
    ground.helm("install", name, charts.folder(installing.ROOT, case.chart), *more)


def remove_records(ground: installing.Ground, home: str, release: str) -> None:
    """Delete what helm has stored of a release, by the command of the READMEs."""
    selector = f"labelSelector=owner%3Dhelm%2Cname%3D{release}"
    ground.delete(f"/api/v1/namespaces/{home}/secrets?{selector}")


def held_leases_are_named(
    ground: installing.Ground,
    snapshot: charts.Snapshot,
    leases: Sequence[str],
    *more: str,
) -> None:
    """By helm's notes of an installation that is only rendered; otherwise none is.

    leases: namespace/name. more: arguments of helm.
    """
    held = re.compile(r"^The Lease (\S+) is held by reference_1\.$", re.MULTILINE)
    folder = charts.folder(installing.ROOT, snapshot.chart)
    place = ("--namespace", snapshot.namespace, "--dry-run=server")
    values = ("--values", str(snapshot.values(installing.ROOT)), *more)
    render = functools.partial(
        ground.helm, "install", snapshot.chart, folder, *place, *values
    )
    assert held.findall(render()) == []
    with contextlib.ExitStack() as stack:
        for lease in leases:
            stack.enter_context(_held(ground, lease))
        notes = render().partition("NOTES:")[2]
        print(notes)
        assert held.findall(notes) == list(leases)


@contextlib.contextmanager
def _held(ground: installing.Ground, lease: str) -> Iterator[None]:
    """Have a Lease that the reference holds."""
    namespace, name = lease.split("/")
    body = {"metadata": {"name": name}, "spec": {"holderIdentity": "reference_1"}}
    ground.api.create(
        resources.LEASES,
        json.dumps(body).encode(),
        namespace,
        timeout_s=installing.TIMEOUT_S,
    )
    try:
        yield
    finally:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        ground.delete(path)


def pods(ground: installing.Ground, home: str) -> dict[str, int]:
    """Return the number of pods by component."""
    items = ground.get(f"/api/v1/namespaces/{home}/pods")["items"]
    apps = [pod["metadata"]["labels"]["app"] for pod in items]
    return {name: apps.count(name) for name in sorted(set(apps))}
