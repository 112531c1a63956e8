"""The packages' place depends on the locks; nothing foreign leaks into the build."""

import pathlib
import re

import pytest

from lib.lab import errors, places
from lib.lab.openstack import install, resources
from lib.lab.run import progress


def test_the_same_machine_and_locks_give_the_same_folder_in_the_cache(
    tmp_path: pathlib.Path,
) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state")

    installation = install.locate(where)

    assert installation == install.locate(where)
    assert installation.folder.parent == tmp_path / "cache" / "openstack"
    assert not installation.is_complete


def test_a_build_begins_with_saying_what_the_system_lacks(
    tmp_path: pathlib.Path,
) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state")

    with pytest.raises(errors.LabError, match="apt-get"):
        install.build(where, progress.Silent(), {"PATH": str(tmp_path)})

    assert not where.cache.exists()


def test_a_finished_build_is_left_alone(tmp_path: pathlib.Path) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state")
    folder = install.locate(where).folder
    folder.mkdir(parents=True)
    (folder / "complete").touch()

    built = install.build(where, progress.Silent(), {"PATH": ""})

    assert built.folder == folder
    assert [file.name for file in folder.iterdir()] == ["complete"]


def test_settings_of_other_clouds_and_pythons_are_dropped() -> None:
    env = {"PATH": "/bin", "OS_CLOUD": "mine", "PYTHONPATH": "x", "http_proxy": "p"}

    assert install.clean(env) == {"PATH": "/bin", "http_proxy": "p"}


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        ([], ""),
        (["global.timeout='3'"], ""),
        (["global.index-url='http://127.0.0.1/a'"], "http://127.0.0.1/a"),
        (
            [
                "global.index-url='http://127.0.0.1/a'",
                ":env:.index-url='http://127.0.0.1/b'",
            ],
            "http://127.0.0.1/b",
        ),
        (["download.index-url='http://127.0.0.1/c'"], ""),
    ],
)
def test_uv_is_given_the_index_that_pip_would_use(
    listing: list[str], expected: str
) -> None:
    assert install.index_url(listing) == expected


@pytest.mark.parametrize("lock", [resources.PACKAGES, resources.UV])
def test_each_locked_package_has_a_version_and_hashes_and_no_host(lock: str) -> None:
    text = resources.read(lock)
    entries = re.split(r"\n(?=\S)", text.strip())

    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==\S+( ;[^\\]*)? \\\n +--hash=sha256:", entry)
    assert "://" not in text
