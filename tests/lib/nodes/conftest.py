"""Factories for the snapshots of these tests."""

from collections.abc import Callable

import pytest

from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import objects
from lib.nodes import model

MakeNode = Callable[..., model.Node]
MakeInstance = Callable[..., Instance]


@pytest.fixture()
def make_node() -> MakeNode:
    """Give a factory of Nodes: initialised, Ready, complete unless told otherwise."""

    def make(
        *,
        taints: tuple[str, ...] = (),
        ready: str = "True",
        provider_id: str = "openstack:///id-1",
        addresses: tuple[tuple[str, str], ...] = (("InternalIP", "10.0.0.1"),),
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> model.Node:
        return model.Node(
            metadata=objects.ObjectMeta(
                name="node-1",
                uid="uid-1",
                resource_version="7",
                labels=labels or {},
                annotations=annotations or {},
            ),
            spec=model.NodeSpec(
                provider_id=provider_id,
                taints=tuple(model.Taint(key, "NoSchedule") for key in taints),
            ),
            status=model.NodeStatus(
                addresses=tuple(model.NodeAddress(t, a) for t, a in addresses),
                conditions=(model.NodeCondition("Ready", ready),),
            ),
        )

    return make


@pytest.fixture()
def make_instance() -> MakeInstance:
    """Give a factory of running instances."""

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
