"""The OpenStackDeployment of the lab, and the namespace and storage it needs."""

from collections.abc import Mapping
from typing import Any

import yaml

from lib.kube.resources import Resource
from lib.lab.osdpl import chart_set

NAMESPACE = "openstack"
NAME = "osh-dev"
STORAGE_CLASS = "lab-local"
REPOSITORY = "openstack-helm"
GROUP = "lcm.mirantis.com"
DEPLOYMENTS = Resource(
    GROUP, "v1alpha1", "openstackdeployments", "OpenStackDeployment", True
)
STATUSES = Resource(
    GROUP,
    "v1alpha1",
    "openstackdeploymentstatus",
    "OpenStackDeploymentStatus",
    True,
)
BUNDLES = Resource(GROUP, "v1alpha1", "helmbundles", "HelmBundle", True)

IMAGES = {
    "default": True,
    "pvc": {"size": "50Gi", "storage_class_name": STORAGE_CLASS},
}
"""Volume of several Nodes: with it, Glance has several replicas."""

BASE = f"""
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels: {{pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {STORAGE_CLASS}}}
provisioner: lab.invalid/workload-simulator
"""


def manifest(
    source: str, name: str = NAME, version: str = chart_set.VERSION
) -> dict[str, Any]:
    """Return an OpenStackDeployment: preset core, size tiny.

    source: address of the chart source. version: of all charts.
    """
    group = {"repo": REPOSITORY, "releases": {"version": version}}
    spec = {
        "openstack_version": "gazpacho",
        "preset": "core",
        "size": "tiny",
        "region_name": "RegionOne",
        "public_domain_name": "it.just.works",
        "internal_domain_name": "cluster.local",
        "local_volume_storage_class": STORAGE_CLASS,
        "persistent_volume_storage_class": STORAGE_CLASS,
        "common": {
            "charts": {"repositories": [{"name": REPOSITORY, "url": source}]},
            "openstack": group,
            "infra": group,
        },
        "features": {
            "glance": {"backends": {"file": {"images": IMAGES}}},
            "neutron": {"tunnel_interface": "ens3"},
            "nova": {"live_migration_interface": "ens3"},
        },
    }
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def text(document: Mapping[str, Any]) -> str:
    """Return an object as YAML."""
    return yaml.safe_dump(dict(document), sort_keys=False)
