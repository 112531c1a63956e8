"""OpenStack as csi-controller uses it: opened from the files of --cloud-config."""

import functools
from collections.abc import Mapping, Sequence

from lib.cloud import protocol
from lib.cloud.openstack import reference_metrics, with_volumes
from lib.cloud.openstack.config import cloud_conf, settings
from lib.cloud.openstack.instances import cloud
from lib.cloud.openstack.volumes import cloud as volumes
from lib.cloud.support import absence_scope, cluster_witnesses
from lib.cloud.support.source import CloudSource, Observers, Unobserved
from lib.csi import driver
from lib.daemon import counting
from lib.process import config

FEATURES = volumes.FEATURES
REFERENCE = counting.Reference(reference_metrics.CALLS, reference_metrics.request)
DRIVER = "cinder.csi.openstack.org"
SECTIONS = frozenset({"global", "metadata", "blockstorage"})
"""Of cloud.conf; others affect neither the start nor a reload.

Source: kubernetes/cloud-provider-openstack pkg/csi/cinder/openstack (Config)."""
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"


def openers(
    paths: Sequence[str],
    names: Sequence[str],
    env: Mapping[str, str],
    user_agents: tuple[str, ...],
    cluster: str,
    node_ids: cluster_witnesses.NodeIds = cluster_witnesses.no_node_ids,
) -> driver.Openers:
    """Return the opener of each named cloud; later files override earlier ones.

    cluster: the ID in the ownership metadata of its volumes. node_ids: of its Nodes; of
    several clouds, it is not known which one has a Node.

    Raises:
        ConfigError: a file can't be used; every problem is listed.
    """
    clouds = {name: cloud_conf.CloudConf(paths, env, name, SECTIONS) for name in names}
    config.require(config.collect(*(files.read for files in clouds.values())))
    own = cluster_witnesses.OfCluster(cluster)
    if len(clouds) == 1:
        own = cluster_witnesses.OfCluster(cluster, node_ids)
    return {
        name: _source(files, user_agents, own).open for name, files in clouds.items()
    }


def check(paths: Sequence[str], names: Sequence[str], env: Mapping[str, str]) -> None:
    """Check the files of each named cloud, and those that they name.

    Raises:
        ConfigError: one cannot be used; every problem is listed.
    """
    sources = [
        _source(cloud_conf.CloudConf(paths, env, name, SECTIONS), (), None)
        for name in names
    ]
    opens = (functools.partial(source.open, Unobserved()) for source in sources)
    config.require(config.collect(*opens))


def _source(
    files: cloud_conf.CloudConf,
    user_agents: tuple[str, ...],
    cluster: cluster_witnesses.OfCluster | None,
) -> CloudSource[settings.Config]:
    memory = absence_scope.HomeMemory()

    def connect(options: settings.Config, observers: Observers) -> protocol.Cloud:
        api = cloud.open_client(
            options, observers.observe, user_agents, observers.circuit
        )
        return with_volumes.of_client(api, options, memory, cluster)

    return files.source(connect)
