"""OpenStackDeployments that the tests of lib/osdpl share."""

import copy
from typing import Any

from lib.osdpl.api import merge, model, spec
from lib.osdpl.values import catalog, layers, render, required_secrets

DOCUMENT: model.Tree = {
    "apiVersion": "lcm.mirantis.com/v1alpha1",
    "kind": "OpenStackDeployment",
    "metadata": {
        "name": "cloud",
        "namespace": "openstack",
        "uid": "u",
        "generation": 1,
    },
    "spec": {
        "openstack_version": "gazpacho",
        "preset": "core",
        "size": "tiny",
        "public_domain_name": "cloud.example.com",
        "persistent_volume_storage_class": "network",
        "local_volume_storage_class": "local",
        "common": {
            "charts": {
                "repositories": [{"name": "osh", "url": "http://charts.example.com"}]
            }
        },
        "features": {
            "services": list(catalog.BY_NAME),
            "neutron": {"tunnel_interface": "ens3"},
            "nova": {"live_migration_interface": "ens4"},
        },
    },
}


def document(**changes: Any) -> model.Tree:
    """Return the sample with changes merged into its spec."""
    changed = copy.deepcopy(DOCUMENT)
    changed["spec"] = merge.merge(changed["spec"], changes)
    return changed


def rendered(**changes: Any) -> model.Rendered:
    """Return the render of the sample with placeholders."""
    deployment = spec.parse(document(**changes))
    effective = layers.effective(deployment.spec)
    services = layers.services(effective)
    inputs = render.Inputs(
        deployment=deployment, credentials=required_secrets.placeholders(services)
    )
    return render.render(inputs)


def release(rendered: model.Rendered, name: str) -> model.Release:
    """Return a release by its name."""
    return next(
        release
        for bundle in rendered.bundles
        for release in bundle.releases
        if release.name == name
    )


def at(tree: model.Tree, path: str) -> Any:
    """Return the value at a path with dots, None where there is none."""
    node: Any = tree
    for key in path.split("."):
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    return node
