"""MariaDB's packages are found whatever the distribution calls them."""

import pathlib

import pytest

from lib.lab import errors
from lib.lab.artifacts import debian


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(
            [
                "mariadb-server",
                "mariadb-server-10.5",
                "mariadb-server-core",
                "mariadb-client-core",
                "mariadb-common",
            ],
            ("mariadb-server-core", "mariadb-client-core", "mariadb-server"),
            id="names without a version, as in Debian 12",
        ),
        pytest.param(
            [
                "mariadb-server",
                "mariadb-server-10.6",
                "mariadb-server-core-10.6",
                "mariadb-client-core-10.6",
                "mariadb-client",
            ],
            (
                "mariadb-server-core-10.6",
                "mariadb-client-core-10.6",
                "mariadb-server-10.6",
            ),
            id="names with a version, as in Ubuntu 22.04",
        ),
        pytest.param(
            [
                "mariadb-server-core-9.9",
                "mariadb-server-core-10.11",
                "mariadb-client-core-10.11",
                "mariadb-server-10.11",
            ],
            (
                "mariadb-server-core-10.11",
                "mariadb-client-core-10.11",
                "mariadb-server-10.11",
            ),
            id="of several versions the newest, compared as numbers",
        ),
        pytest.param(["mariadb-common"], (), id="no server in the lists"),
    ],
)
def test_the_packages_of_the_server(known: list[str], expected: tuple[str]) -> None:
    assert debian.server_packages(known) == expected


def test_only_packages_that_would_be_new_are_fetched_beside_the_server() -> None:
    simulation = [
        "NOTE: This is only a simulation!",
        "Inst libaio1t64 (0.3.113-6 Ubuntu:24.04/noble [amd64])",
        "Inst libmariadb3:amd64 (1:10.11 Ubuntu:24.04/noble [amd64])",
        "Inst libc6 [2.39-0] (2.39-1 Ubuntu:24.04/noble [amd64])",
        "Conf libaio1t64 (0.3.113-6 Ubuntu:24.04/noble [amd64])",
    ]

    assert debian.newly_installed(simulation) == ("libaio1t64", "libmariadb3")


def test_the_trees_own_libraries_come_first(tmp_path: pathlib.Path) -> None:
    library = tmp_path / "usr/lib/x86_64-linux-gnu"
    library.mkdir(parents=True)

    env = debian.environment(tmp_path, {"PATH": "/bin"})

    assert env == {"PATH": "/bin", "LD_LIBRARY_PATH": str(library)}


def test_a_system_without_apt_is_told_in_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.LabError, match=r"needs apt-get .* Debian and Ubuntu"):
        debian.require({"PATH": str(tmp_path)})
