"""Kubernetes objects of the module cloud-provider-dvp, as documents."""

from lib.discovery import manifests

_MODULE = manifests.Module("cloud-provider-dvp")

LABELS = _MODULE.labels
MODULE_NAMESPACE = _MODULE.namespace
MACHINES_NAMESPACE = manifests.MACHINES_NAMESPACE
SYSTEM_NAMESPACE = manifests.SYSTEM_NAMESPACE

Manifest = manifests.Manifest
secret = _MODULE.secret
for_machines = _MODULE.for_machines
