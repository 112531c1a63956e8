"""Objects of Cluster API, as capdvp and the node controller read them."""

from typing import Any

from lib.discovery.dvp import capi, checksums, model

CLUSTER = model.ClusterFacts("f49dd1c3-a63a-4565-a06c-625e35587eab", "sea")
SPEC: dict[str, Any] = {
    "virtualMachine": {
        "cpu": {"cores": 2, "coreFraction": "50%"},
        "memory": {"size": 4294967296},
        "virtualMachineClassName": "big",
        "bootloader": "EFI",
        "nodeSelector": {"a": "b"},
    },
    "rootDisk": {
        "size": "20Gi",
        "storageClass": "fast",
        "image": {"kind": "VirtualImage", "name": "debian"},
    },
    "additionalDisks": [{"size": "10Gi", "storageClass": "slow"}],
}


def test_the_cluster() -> None:
    """The label with the prefix exists only where there is one."""
    labels = {
        "heritage": "deckhouse",
        "module": "cloud-provider-dvp",
        "app": "capdvp-controller-manager",
        "dvp.deckhouse.io/cluster-prefix": "sea",
    }
    assert capi.cluster_object(CLUSTER) == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "DeckhouseCluster",
        "metadata": {
            "name": "dvp",
            "namespace": "d8-cloud-instance-manager",
            "labels": labels,
        },
    }
    bare: Any = capi.cluster_object(model.ClusterFacts("uuid"))
    assert "dvp.deckhouse.io/cluster-prefix" not in bare["metadata"]["labels"]


def test_a_machine_template() -> None:
    """Named after group and zone, with the checksum of its class."""
    group = model.NodeGroup("worker", SPEC, manual_rollout_id="7")
    template: Any = capi.machine_template(CLUSTER, group, "zonea")
    assert template["metadata"]["name"] == "worker-02320933-gen1"
    assert template["metadata"]["annotations"] == {
        "checksum/instance-class": checksums.by_rollout_fields(SPEC, "7"),
        "helm.sh/resource-policy": "keep",
    }
    assert template["spec"]["template"]["spec"] == {
        "vmClassName": "big",
        "cpu": {"cores": 2, "cpuFraction": "50%"},
        "memory": "4294967296",
        "rootDiskSize": "20Gi",
        "rootDiskStorageClass": "fast",
        "additionalDisks": [{"size": "10Gi", "storageClass": "slow"}],
        "bootDiskImageRef": {"kind": "VirtualImage", "name": "debian"},
        "bootloader": "EFI",
    }


def test_fields_that_are_not_set_are_absent() -> None:
    """Only the class of VMs has a default: the one that every parent has."""
    image = {"kind": "ClusterVirtualImage", "name": "ubuntu"}
    spec = {
        "virtualMachine": {"cpu": {"cores": 1}, "memory": {"size": "1Gi"}},
        "rootDisk": {"size": "10Gi", "image": image},
    }
    assert capi.machine_spec(spec) == {
        "vmClassName": "generic",
        "cpu": {"cores": 1},
        "memory": "1Gi",
        "rootDiskSize": "10Gi",
        "bootDiskImageRef": image,
    }
