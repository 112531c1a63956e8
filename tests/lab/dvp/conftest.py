"""Fixtures of the tests on a simulated parent cluster of DVP."""

import pytest

from tests.harness.dvp import parent_fixtures

for contract in ("catalog", "machines", "volumes"):
    pytest.register_assert_rewrite(f"tests.contract.{contract}")

where = parent_fixtures.where
parent = parent_fixtures.parent
project = parent_fixtures.project
