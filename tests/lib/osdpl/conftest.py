"""Clusters in which all releases are installed: installed once, then copied."""

import pytest

from tests.lib.osdpl.ground import Cluster, Installed, Process


@pytest.fixture(scope="session")
def installed_version(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return a function that copies the cluster of an OpenStack version."""
    clusters: dict[str, Cluster] = {}

    def copy(version: str) -> Cluster:
        if version not in clusters:
            cluster = Cluster(tmp_path_factory.mktemp(version))
            cluster.create(openstack_version=version)
            Process(cluster).settle()
            clusters[version] = cluster
        return clusters[version].copy()

    return copy


@pytest.fixture()
def installed(installed_version: Installed) -> Cluster:
    """Return a cluster in which all releases are installed."""
    return installed_version("gazpacho")
