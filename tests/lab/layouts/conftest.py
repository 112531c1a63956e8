"""Fixtures of the tests of terraform/openstack: OpenTofu, and the lab's OpenStack."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from lib.lab import places
from lib.lab.layouts import tofu
from lib.lab.openstack import tenant
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.layouts import inputs, roots
from tests.harness.openstack import fixtures
from tests.harness.openstack import testing as openstack_testing

shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project


@pytest.fixture(scope="session")
def program(lease: leases.Lease) -> tofu.Tofu:
    """Build OpenTofu and the provider, once for each machine."""
    return tofu.build(lease.where, testing.shown())


@pytest.fixture(scope="session")
def layouts(program: tofu.Tofu) -> Iterator[pathlib.Path]:
    """Yield a copy of terraform/openstack whose roots are initialised."""
    with tofu.copied(roots.TREE) as copy:
        for root in sorted(copy.glob("layouts/*/*")):
            program.require(root, "init", "-backend=false")
        yield copy


@pytest.fixture()
def cluster(
    where: places.Places,
    program: tofu.Tofu,
    layouts: pathlib.Path,
    project: openstack_testing.MakeProject,
    tmp_path: pathlib.Path,
) -> roots.MakeCluster:
    """Return a factory of clusters by layout and changes, each in a new project."""

    def make(layout: str, **changes: Any) -> tuple[roots.LayoutCluster, tenant.Tenant]:
        account, user = project("layout")
        user.connection.network.create_security_group(name="more")
        provider = roots.provider(where, account)
        document = inputs.document(layout, provider, **changes)
        return roots.LayoutCluster(program, layouts, tmp_path, document), user

    return make
