"""The script that chooses batches, loaded by its path."""

import importlib.util
import pathlib
import sys
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def tiers() -> ModuleType:
    path = pathlib.Path("build-support/tiers.py")
    spec = importlib.util.spec_from_file_location("tiers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiers"] = module
    spec.loader.exec_module(module)
    return module
