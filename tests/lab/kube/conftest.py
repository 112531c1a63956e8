"""Fixtures of the tests that need no cloud."""

import pathlib

import pytest

from lib.lab.artifacts import pexes


@pytest.fixture(scope="session")
def ccm_pex() -> pathlib.Path:
    """Return the PEX file of openstack-ccm."""
    return pexes.beside("openstack-ccm")
