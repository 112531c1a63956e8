"""What a living service needs is copied beside it; digests tell contents apart."""

import importlib.metadata
import pathlib

from lib.lab.openstack import resources


def test_the_guests_files_are_unpacked_and_their_drivers_can_be_found(
    tmp_path: pathlib.Path,
) -> None:
    resources.unpack_guest(tmp_path)
    resources.unpack_guest(tmp_path)

    assert {"service.py", "lab_volume.py"} <= {file.name for file in tmp_path.iterdir()}
    (distribution,) = importlib.metadata.distributions(path=[str(tmp_path)])
    assert {point.group for point in distribution.entry_points} == {
        "neutron.ml2.mechanism_drivers",
        "octavia.compute.drivers",
        "octavia.network.drivers",
    }
    for point in distribution.entry_points:
        assert (tmp_path / f"{point.module}.py").exists()


def test_the_guests_programs_are_python() -> None:
    for name in resources.names("guest"):
        if name.endswith(".py"):
            compile(resources.read(name), name, "exec")


def test_a_digest_tells_where_one_part_ends() -> None:
    assert resources.digest("a", "bc") != resources.digest("ab", "c")


def test_all_that_decides_the_seed_is_there_to_be_identified() -> None:
    assert len(resources.seed_digest()) == 16
