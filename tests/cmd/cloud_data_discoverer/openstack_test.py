"""What is wrong with the environment is told in one line each."""

import pathlib

import prometheus_client
import pytest

from cloud_data_discoverer import openstack
from lib.daemon import counting
from lib.process import config

GOOD = {
    "OS_AUTH_URL": "http://127.0.0.1:1/v3",
    "OS_DOMAIN_NAME": "Default",
    "OS_USERNAME": "me",
    "OS_PASSWORD": "hunter2",
    "OS_TENANT_ID": "1",
    "OS_REGION": "RegionOne",
}


def calls() -> counting.CloudMetrics:
    return counting.CloudMetrics("openstack", prometheus_client.CollectorRegistry())


def test_a_good_environment_opens_a_cloud_without_asking_it() -> None:
    opened = openstack.source(openstack.read(GOOD), "agent").open(calls()).cloud
    assert opened.name == "openstack"
    assert opened.catalog is not None


def test_every_problem_is_told_and_no_secret() -> None:
    with pytest.raises(config.ConfigError) as caught:
        openstack.read({"OS_PASSWORD": "hunter2"})
    assert len(caught.value.problems) == 5
    assert "hunter2" not in str(caught.value)


def test_a_ca_that_is_missing_is_told_by_its_variable(tmp_path: pathlib.Path) -> None:
    arguments = openstack.read({**GOOD, "OS_CACERT": str(tmp_path / "ca.crt")})
    with pytest.raises(config.ConfigError, match="OS_CACERT: .*ca.crt: no such file"):
        openstack.source(arguments, "agent").open(calls())
