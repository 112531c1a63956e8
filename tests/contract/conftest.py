"""Has the asserts of the contract suites explain themselves as those of tests do."""

import pytest

for name in ("catalog", "instances", "load_balancers", "volumes"):
    pytest.register_assert_rewrite(f"tests.contract.{name}")
