"""Fixtures of the tests of the operator's tool."""

import pathlib

import pytest

from tests.harness.daemons.unreachable import CONF, KUBECONFIG


@pytest.fixture()
def nowhere(tmp_path: pathlib.Path) -> tuple[str, ...]:
    """Return options with valid files, of a cloud and a cluster that do not exist."""
    conf, kubeconfig = tmp_path / "cloud.conf", tmp_path / "kubeconfig"
    conf.write_text(CONF)
    kubeconfig.write_text(KUBECONFIG)
    return (f"--cloud-config={conf}", f"--kubeconfig={kubeconfig}")
