"""What can go wrong before a service is started is told in one sentence."""

import json
import pathlib
import socket
from collections.abc import Iterator

import pytest

from lib.lab import errors, places
from lib.lab.openstack import install, lab, layout
from lib.lab.run import progress


@pytest.fixture()
def taken() -> Iterator[int]:
    """Yield a port on which this process listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def built(tmp_path: pathlib.Path, port_base: int) -> places.Places:
    """Make a cache which says that everything is built."""
    where = places.Places(tmp_path / "cache", tmp_path / "state", port_base)
    folder = install.locate(where).folder
    folder.mkdir(parents=True)
    (folder / "complete").touch()
    return where


def test_an_unknown_service_is_named_with_the_known_ones(
    tmp_path: pathlib.Path,
) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state")

    with pytest.raises(errors.LabError, match=r"no service swift; there are keystone"):
        lab.up(where, progress.Silent(), services=["keystone", "swift"])


def test_a_taken_port_is_told_with_its_holder_before_anything_starts(
    tmp_path: pathlib.Path, taken: int
) -> None:
    offset = layout.ports(places.Places(tmp_path, tmp_path, 0))[layout.NOVA]
    where = built(tmp_path, taken - offset)

    with pytest.raises(errors.LabError, match=rf"port {taken}, meant for nova.*pid"):
        lab.up(where, progress.Silent())

    assert {status.pid for status in lab.status(where)} == {None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"port_base": 21100}, r"for ports from 21100, not from 21000"),
        ({"install": "another"}, r"another version of the lab"),
    ],
)
def test_data_made_for_other_ports_or_packages_is_refused(
    tmp_path: pathlib.Path, change: dict[str, object], message: str
) -> None:
    where = built(tmp_path, 21000)
    home = layout.of(where)
    mark = {"port_base": 21000, "install": home.install.key, **change}
    home.data.mkdir(parents=True)
    (home.data / "seeded.json").write_text(json.dumps(mark))

    with pytest.raises(errors.LabError, match=message):
        lab.up(where, progress.Silent())


def test_a_full_disk_is_told_before_anything_starts(
    tmp_path: pathlib.Path, full: pathlib.Path
) -> None:
    cache = built(tmp_path, 21000).cache
    where = places.Places(cache, full / "state", 21000)

    with pytest.raises(errors.LabError, match=r"has 0 MB left, but OpenStack's data"):
        lab.up(where, progress.Silent())

    assert {status.pid for status in lab.status(where)} == {None}


def test_taking_down_what_never_ran_is_fine_and_wiping_removes_the_data(
    tmp_path: pathlib.Path,
) -> None:
    where = built(tmp_path, 21000)
    home = layout.of(where)
    home.data.mkdir(parents=True)

    lab.down(where)
    assert home.data.exists()

    lab.down(where, wipe=True)
    assert not home.root.exists()
    assert install.locate(where).is_complete


def test_the_status_of_a_lab_that_never_ran_names_every_program_as_down(
    tmp_path: pathlib.Path,
) -> None:
    rows = lab.status(places.Places(tmp_path / "cache", tmp_path / "state", 21000))

    assert {row.name for row in rows} == {layout.DATABASE, *layout.SERVICES}
    assert not any(row.is_answering or row.pid for row in rows)
