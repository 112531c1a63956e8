"""How a daemon finds its API server."""

import pathlib

import prometheus_client
import pytest

from lib.daemon import starting
from lib.kube import errors, resources
from lib.process import config
from lib.process import metrics as process_metrics

BUILD = process_metrics.Build("some-daemon", "1.2.3")


def test_a_kubeconfig_that_is_none_is_named(tmp_path: pathlib.Path) -> None:
    """With the flag, the value, and what would be right."""
    file = tmp_path / "kubeconfig"
    file.write_text("[]")
    registry = prometheus_client.CollectorRegistry()
    with pytest.raises(config.ConfigError) as caught:
        starting.connect(BUILD, starting.Reach(str(file)), {}, registry)
    expected = f"--kubeconfig: {file}: malformed: must be a mapping with"
    assert str(caught.value) == f"{expected} clusters, users and contexts"


def test_calls_are_counted(tmp_path: pathlib.Path) -> None:
    """Also a call without an answer."""
    registry = prometheus_client.CollectorRegistry()
    reach = starting.Reach(master="http://127.0.0.1:9")
    api = starting.connect(BUILD, reach, {}, registry)
    with pytest.raises(errors.KubeError):
        api.create(resources.NODES, b"{}", timeout_s=1)
    labels = {"method": "POST", "resource": "nodes"}
    counted = [
        sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "rest_client_requests_total"
        and labels.items() <= sample.labels.items()
    ]
    assert sum(counted) == 1
