"""Fixtures of tests on the core of Cluster API; conftest.py names those it uses."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.capi import core as core_manager
from lib.lab.capi import core_program
from lib.lab.dvp.project import Project
from tests.harness import testing
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import capi_stage
from tests.harness.machines.capi_stage import CapiStage


@pytest.fixture(scope="session")
def core(where: places.Places) -> Iterator[places.Places]:
    """Run the core of Cluster API beside the control plane of `where`."""
    core_program.build(where, testing.shown())
    core_manager.up(where, testing.shown())
    yield where
    core_manager.down(where)


@pytest.fixture(scope="module")
def stage(
    parent: DvpParent, project: Project, core: places.Places
) -> Iterator[CapiStage]:
    """Run all that Machines on DVP need, but for capdvp."""
    with capi_stage.opened(parent, project, core) as opened:
        yield opened
