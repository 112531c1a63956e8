"""Many documents become one description of the cluster, or all their problems."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lib.discovery.openstack import render, sources
from lib.process import config

Configuration = Callable[[str], dict[str, Any]]
CLUSTER = {
    "kind": "ClusterConfiguration",
    "cloud": {"prefix": "sea"},
    "podSubnetCIDR": "10.111.0.0/16",
}
DISCOVERED = {
    "apiVersion": "deckhouse.io/v1",
    "kind": "OpenStackCloudDiscoveryData",
    "internalNetworkNames": ["inner"],
    "externalNetworkNames": ["public"],
    "podNetworkMode": "DirectRouting",
    "zones": [],
    "instances": {"imageName": "ubuntu", "mainNetwork": "inner"},
    "loadBalancer": {"subnetID": "subnet-1", "floatingNetworkID": "net-1"},
}
OFFERED = {
    "apiVersion": "deckhouse.io/v1alpha1",
    "kind": "OpenStackCloudProviderDiscoveryData",
    "additionalNetworks": [],
    "additionalSecurityGroups": [],
    "defaultImageName": "ubuntu",
    "flavors": ["m1"],
    "images": ["ubuntu"],
    "mainNetwork": "inner",
    "volumeTypes": [{"id": "1", "name": "SSD R1"}, {"id": "2", "name": "__DEFAULT__"}],
    "zones": ["nova"],
}
CLASS = {
    "kind": "OpenStackInstanceClass",
    "metadata": {"name": "worker"},
    "spec": {"flavorName": "m1.large"},
}


def settings(**fields: object) -> dict[str, object]:
    return {
        "kind": "ModuleConfig",
        "metadata": {"name": "cloud-provider-openstack"},
        "spec": {"settings": fields},
    }


def node_group(name: str, **more: object) -> dict[str, object]:
    reference = {"kind": "OpenStackInstanceClass", "name": "worker"}
    cloud = {"classReference": reference, **more}
    return {
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"cloudInstances": cloud},
    }


def problems(*documents: object, uuid: str = "") -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        sources.read(documents, uuid)
    return str(caught.value).splitlines()


def test_a_configuration_alone_is_enough(configuration: Configuration) -> None:
    """The rest is assumed, and that is known."""
    observed = sources.read([configuration("Simple")])
    assert observed.is_assumed
    assert observed.provider.internal_network_names == ("public",)
    assert observed.groups == ()


@pytest.mark.parametrize("layout", ["Standard", "StandardWithNoRouter"])
def test_a_layout_that_is_named_by_the_prefix_asks_for_it(
    layout: str, configuration: Configuration
) -> None:
    """The discovery data, which does not exist yet, is not asked for."""
    messages = (
        "ClusterConfiguration cloud.prefix: not set: must be the prefix in the name of"
        " the internal network"
    )
    assert problems(configuration(layout)) == [messages]
    assert problems(configuration(layout), CLUSTER | {"cloud": {}}) == [messages]
    named = sources.read([configuration(layout), CLUSTER])
    assert named.provider.internal_network_names == ("sea",)


def test_a_network_of_the_discovery_data_is_asked_for_there(
    configuration: Configuration,
) -> None:
    empty = DISCOVERED | {"internalNetworkNames": []}
    messages = problems(configuration("Standard"), empty)
    assert messages == [
        "internalNetworkNames: not set: must be at least one name, from the settings or"
        " from the discovery data"
    ]


def test_everything_together(configuration: Configuration) -> None:
    """Each document has its say; zones come from what the cloud offers."""
    mcm = node_group("old", zones=["a"])
    mcm["metadata"] = {
        "name": "old",
        "annotations": {"node.deckhouse.io/use-mcm": "", "manual-rollout-id": "7"},
    }
    observed = sources.read(
        [
            configuration("Standard"),
            CLUSTER,
            DISCOVERED,
            OFFERED,
            settings(storageClass={"exclude": ["default"]}, tags={"a": "b"}),
            CLASS,
            node_group("new"),
            mcm,
            {"kind": "InitConfiguration"},
            {"kind": "ModuleConfig", "metadata": {"name": "other"}},
        ],
        "uuid",
    )
    assert not observed.is_assumed
    assert observed.provider.zones == ("nova",)
    assert observed.provider.tags == {"a": "b"}
    assert [storage_class.name for storage_class in observed.classes] == ["ssd-r1"]
    assert [(group.name, group.zones, group.use_mcm) for group in observed.groups] == [
        ("new", (), False),
        ("old", ("a",), True),
    ]
    assert observed.groups[1].manual_rollout_id == "7"
    assert observed.skipped == ("InitConfiguration", "ModuleConfig")
    assert (observed.cluster.prefix, observed.cluster.pod_subnet) == (
        "sea",
        "10.111.0.0/16",
    )


def test_a_hybrid_cluster_has_a_module_config(configuration: Configuration) -> None:
    """Its settings say what the missing configuration would."""
    connection = configuration("Simple")["provider"]
    observed = sources.read(
        [settings(connection=connection, internalNetworkNames=["inner"])]
    )
    assert observed.provider.hybrid
    assert observed.configuration is None


def test_nothing_usable_is_one_problem() -> None:
    """Not a list of every field of a document that is not there."""
    (message,) = problems()
    assert message.startswith(
        "OpenStackClusterConfiguration: not set: must be a document of this kind"
    )


def test_all_documents_are_judged(configuration: Configuration) -> None:
    """A mistake in each is a problem of each, by the name of its document."""
    wrong = configuration("Standard")
    wrong["layout"] = "Mixed"
    message = problems(
        wrong,
        {**DISCOVERED, "podNetworkMode": "Any"},
        {**OFFERED, "zones": []},
        settings(zones="a"),
        {**CLASS, "spec": {}},
        node_group("new"),
        node_group(
            "lost", classReference={"kind": "OpenStackInstanceClass", "name": "x"}
        ),
        "text",
        {"no": "kind"},
    )
    beginnings = [
        "document 8: invalid value: must be an object with a kind",
        "document 9: invalid value: must be an object with a kind",
        (
            'cloud-provider-openstack zones: invalid value "a": must be a list (this is'
            " a string)"
        ),
        (
            'OpenStackClusterConfiguration layout: unsupported value "Mixed": must be'
            " one of Standard"
        ),
        (
            'OpenStackCloudDiscoveryData podNetworkMode: unsupported value "Any": must'
            " be one of VXLAN"
        ),
        (
            "OpenStackCloudProviderDiscoveryData zones: invalid value: must be a list"
            " of at least 1 item"
        ),
        ("OpenStackInstanceClass/worker flavorName: not set"),
        (
            "NodeGroup/lost spec.cloudInstances.classReference.name:"
            ' OpenStackInstanceClass "x" not found: must be one of worker'
        ),
    ]
    assert len(message) == len(beginnings)
    for line, beginning in zip(message, beginnings, strict=True):
        assert line.startswith(beginning)


def test_a_kind_that_must_be_single(configuration: Configuration) -> None:
    """Two of them: which one counts is not guessed."""
    message = problems(configuration("Simple"), configuration("Simple"))
    assert message == [
        'OpenStackClusterConfiguration: invalid value "2 documents": must be one'
        " document of this kind"
    ]


def test_machines_need_to_know_the_cluster(configuration: Configuration) -> None:
    """What is missing for the node groups is told together."""
    message = problems(configuration("Simple"), CLASS, node_group("new"))
    assert message == [
        (
            "--cluster-uuid: not set: must be the UUID of the cluster, which NodeGroups"
            " require"
        ),
        (
            "ClusterConfiguration cloud.prefix: not set: must be a value, which"
            " NodeGroups require"
        ),
        (
            "ClusterConfiguration podSubnetCIDR: not set: must be a value, which"
            " NodeGroups require"
        ),
        ("zones: not set: must be at least one zone: a NodeGroup names none"),
    ]


def test_node_groups_that_can_not_be_named_are_told(
    configuration: Configuration,
) -> None:
    """Names, zones and classes: machines are named after them."""
    long = "x" * 55
    message = problems(
        configuration("Simple"),
        CLUSTER,
        CLASS,
        node_group("Front"),
        node_group(long),
        node_group(""),
        node_group("same"),
        node_group("same"),
        node_group("odd", zones="a"),
        node_group("odder", zones=["a", 1]),
        uuid="uuid",
    )
    beginnings = [
        (
            'NodeGroup/Front metadata.name: invalid value "Front": must be a DNS label'
            " of at most 54"
        ),
        f'NodeGroup/{long} metadata.name: invalid value "{long}": must be a DNS label',
        'NodeGroup/ metadata.name: invalid value "": must be a DNS label',
        (
            'NodeGroup/same metadata.name: invalid value "same": must be a name that is'
            " unique among NodeGroups"
        ),
        (
            'NodeGroup/odd spec.cloudInstances.zones: invalid value "a": must be a list'
            " of names"
        ),
        (
            "NodeGroup/odder spec.cloudInstances.zones: invalid value \"['a', 1]\":"
            " must be a list"
        ),
    ]
    assert len(message) == len(beginnings)
    for line, beginning in zip(message, beginnings, strict=True):
        assert line.startswith(beginning), line


def test_volume_types_without_a_class_are_told(configuration: Configuration) -> None:
    """Collisions and bad patterns are problems here, too."""
    types = [{"id": "1", "name": "SSD"}, {"id": "2", "name": "ssd"}]
    message = problems(configuration("Simple"), {**OFFERED, "volumeTypes": types})
    assert len(message) == 2
    assert message[0].startswith(
        'OpenStackCloudProviderDiscoveryData volume type: invalid value "SSD"'
    )
    bad = settings(storageClass={"exclude": ["("]})
    (said_of_pattern,) = problems(configuration("Simple"), bad)
    assert (
        'storageClass.exclude[0]: invalid value "(": must be a regular exp'
        in said_of_pattern
    )


def names(documents: tuple[dict[str, Any], ...]) -> list[tuple[str, str]]:
    return [(document["kind"], document["metadata"]["name"]) for document in documents]


def test_what_is_rendered(configuration: Configuration) -> None:
    """Secrets, the cluster and each group's machines in each zone, and values."""
    offered = {**OFFERED, "zones": ["zonea", "zoneb"]}
    mcm = node_group("old", zones=["zonea"])
    mcm["metadata"] = {
        "name": "old",
        "annotations": {"node.deckhouse.io/use-mcm": ""},
    }
    created = render.render(
        sources.read(
            [
                configuration("Standard"),
                CLUSTER,
                DISCOVERED,
                offered,
                CLASS,
                node_group("new"),
                mcm,
            ],
            "f49dd1c3-a63a-4565-a06c-625e35587eab",
        )
    )
    assert names(created.secrets) == [
        ("Secret", "d8-node-manager-cloud-provider"),
        ("Secret", "cloud-controller-manager"),
        ("Secret", "cloud-data-discoverer"),
        ("Secret", "capi-user-credentials"),
        ("Secret", "d8-cloud-provider-openstack-mcm"),
        ("Secret", "d8-cloud-provider-openstack-capi"),
        ("Secret", "d8-provider-cluster-configuration"),
    ]
    assert names(created.templates) == [
        ("OpenStackCluster", "openstack"),
        ("OpenStackMachineTemplate", "new-02320933-gen1"),
        ("OpenStackMachineTemplate", "new-6bdb5b0d-gen1"),
        ("OpenStackMachineClass", "old-02320933"),
        ("Secret", "old-02320933"),
    ]
    internal = created.values["cloudProviderOpenstack"]["internal"]  # type: ignore[index]
    assert internal["storageClasses"] == [
        {"name": "default", "type": "__DEFAULT__"},
        {"name": "ssd-r1", "type": "SSD R1"},
    ]
    assert internal["loadBalancer"] == DISCOVERED["loadBalancer"]
    assert internal["zones"] == ["zonea", "zoneb"]
    assert json.dumps(created.values)


def test_machines_that_can_not_be_made_are_told(configuration: Configuration) -> None:
    """Each group by its name."""
    raw = {**CLASS, "spec": {"flavorName": "m1", "tags": ["fast"]}}
    mcm = node_group("old", zones=["a"])
    mcm["metadata"] = {"name": "old", "annotations": {"node.deckhouse.io/use-mcm": ""}}
    observed = sources.read([configuration("Simple"), CLUSTER, raw, mcm], "uuid")
    with pytest.raises(config.ConfigError) as caught:
        render.render(observed)
    assert (
        str(caught.value)
        == "NodeGroup/old tags: not supported: raw server tags require"
        " Cluster API"
    )
