"""Factories for the snapshots of these tests."""

from collections.abc import Callable

import pytest

from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import nodes as kube_nodes
from lib.kube import objects

MakeNode = Callable[..., kube_nodes.Node]
MakeInstance = Callable[..., Instance]


@pytest.fixture()
def make_node() -> MakeNode:
    """Return a factory of Nodes: initialised, Ready, complete unless told otherwise."""

    def make(
        *,
        taints: tuple[str, ...] = (),
        ready: str = "True",
        provider_id: str = "openstack:///id-1",
        addresses: tuple[tuple[str, str], ...] = (("InternalIP", "10.0.0.1"),),
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        finalizers: tuple[str, ...] = (),
    ) -> kube_nodes.Node:
        return kube_nodes.Node(
            metadata=objects.ObjectMeta(
                name="node-1",
                uid="uid-1",
                resource_version="7",
                labels=labels or {},
                annotations=annotations or {},
                finalizers=finalizers,
            ),
            spec=kube_nodes.NodeSpec(
                provider_id=provider_id,
                taints=tuple(kube_nodes.Taint(key, "NoSchedule") for key in taints),
            ),
            status=kube_nodes.NodeStatus(
                addresses=tuple(kube_nodes.NodeAddress(t, a) for t, a in addresses),
                conditions=(kube_nodes.NodeCondition("Ready", ready),),
            ),
        )

    return make


@pytest.fixture()
def make_instance() -> MakeInstance:
    """Return a factory of running instances."""

    def make(
        *,
        phase: Phase = Phase.RUNNING,
        addresses: tuple[Address, ...] = (
            Address(AddressType.INTERNAL_IP, "10.0.0.1"),
        ),
        instance_type: str | None = "m1.small",
        zone: str = "az1",
        region: str = "RegionOne",
        labels: tuple[tuple[str, str], ...] = (),
    ) -> Instance:
        return Instance(
            id=InstanceId("id-1"),
            name="node-1",
            phase=phase,
            provider_id="openstack:///id-1",
            addresses=addresses,
            instance_type=instance_type,
            zone=zone,
            region=region,
            labels=labels,
        )

    return make
