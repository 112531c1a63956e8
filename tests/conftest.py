"""How every test process runs."""

import gc

import pytest

# Tests create many objects and few cycles: with Python's own threshold of 700, up to a
# sixth of their time goes into the search for garbage.
gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep modules and tests out of the search for garbage."""
    gc.collect()
    gc.freeze()
