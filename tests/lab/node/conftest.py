"""A machine with loop disks, in a mount namespace of the test process."""

import os
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from lib.lab import places
from lib.lab.storage import file_system_tools, loop_disks
from tests.harness import testing


@pytest.fixture(scope="session")
def tools() -> Mapping[str, str]:
    """Return an environment in which the programs of all file systems are found."""
    reason = loop_disks.unavailable()
    if reason is not None:
        pytest.skip(reason)
    where = places.default()
    with testing.shown().step("File system tools") as step:
        file_system_tools.ensure(where, os.environ, step)
    loop_disks.enter_private_mounts()
    return file_system_tools.environment(where, os.environ)


@pytest.fixture()
def machine(
    tools: Mapping[str, str], tmp_path: pathlib.Path
) -> Iterator[loop_disks.Machine]:
    """Return a machine without disks."""
    del tools
    with loop_disks.machine(tmp_path) as created:
        yield created
