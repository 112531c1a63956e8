"""Carries actions out: one write each, based on exactly the observed object."""

from collections.abc import Mapping

import msgspec

from lib.discovery import cycle_report, model, provider
from lib.discovery.model import Action, DiscoveryStep
from lib.discovery.observe import TIMEOUT_S
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.process import decoding

Json = dict[str, object]


class DiscoveryActor:
    """Writes to the API server, and sets the metrics.

    of: the provider, whose StorageClasses are created.
    """

    def __init__(
        self, api: client.Api, shown: cycle_report.Display, of: provider.Provider
    ) -> None:
        self._api = api
        self._shown = shown
        self._provider = of

    def act(self, action: Action) -> None:
        """Carry one action out.

        Raises:
            KubeError: it was not written.
        """
        match action:
            case model.ShowConditions(unmet=unmet):
                self._shown.show(DiscoveryStep.CONDITIONS, unmet)
            case model.ShowOrphans(disks=disks):
                self._shown.show(DiscoveryStep.ORPHANED_DISKS, disks)
            case model.StoreConditions(text=text, base=base):
                data: Json = {"data": {model.CONDITIONS_KEY: text}}
                self._store(resources.CONFIG_MAPS, model.CONDITIONS_MAP, data, base)
            case model.StoreCatalog(items=items, base=base):
                listed: Json = {"instanceTypes": msgspec.to_builtins(items)}
                catalogs = resources.INSTANCE_TYPES_CATALOGS
                self._store(catalogs, model.CATALOG, listed, base)
            case model.StoreDocument(document=document, base=base):
                secret: Json = {"data": {model.DATA_KEY: document}}
                self._store(resources.SECRETS, self._provider.data_secret, secret, base)
            case model.RecordDefault(name=name, base=base):
                self._record(name, base)
            case _:
                self._on_class(action)

    def _record(self, name: str, base: bytes) -> None:
        stored = decoding.decode(base, dict[str, object])
        metadata = msgspec.convert(stored["metadata"], Json)
        annotations = msgspec.convert(metadata.get("annotations") or {}, Json)
        if name:
            annotations[model.DEFAULT_CHOICE] = name
        else:
            annotations.pop(model.DEFAULT_CHOICE, None)
        fields: Json = {"metadata": metadata | {"annotations": annotations}}
        self._store(resources.SECRETS, self._provider.data_secret, fields, base)

    def _on_class(self, action: Action) -> None:
        classes = resources.STORAGE_CLASSES
        match action:
            case model.CreateClass() as creation:
                body = msgspec.json.encode(manifest(creation, self._provider))
                self._api.create(classes, body, timeout_s=TIMEOUT_S)
            case model.DeleteClass(name=name, uid=uid, resource_version=version):
                preconditions = {"uid": uid, "resourceVersion": version}
                options = msgspec.json.encode({"preconditions": preconditions})
                try:
                    self._api.delete(classes, name, body=options, timeout_s=TIMEOUT_S)
                except kube_errors.NotFound:
                    return
            case model.ChangeClass(name=name, resource_version=version) as change:
                patch = msgspec.json.encode(_patch(change, version))
                self._api.patch(classes, name, patch, timeout_s=TIMEOUT_S)

    def _store(
        self, resource: Resource, name: str, fields: Json, base: bytes | None
    ) -> None:
        """Create the object, or replace these fields of the observed object."""
        namespace = model.NAMESPACE if resource.namespaced else None
        if base is None:
            whole = _head(resource, name) | fields
            body = msgspec.json.encode(whole)
            self._api.create(resource, body, namespace, timeout_s=TIMEOUT_S)
            return
        stored = decoding.decode(base, dict[str, object])
        self._api.request(
            "PUT",
            resource.path(namespace, name),
            body=msgspec.json.encode(stored | fields),
            timeout_s=TIMEOUT_S,
        )


def manifest(creation: model.CreateClass, of: provider.Provider) -> Json:
    """Return the StorageClass of a volume type.

    Source: deckhouse, StorageClasses of cloud-provider-openstack.
    """
    storage_class = creation.desired
    head = _head(resources.STORAGE_CLASSES, storage_class.name)
    metadata: Json = {
        "name": storage_class.name,
        "labels": dict((model.OWNERSHIP_LABEL,)),
    }
    annotations = _recorded(creation.offered.id, creation.choice)
    if storage_class.is_default:
        annotations[model.DEFAULT_CLASS] = "true"
    if annotations:
        metadata["annotations"] = annotations
    policy = creation.offered.reclaim_policy
    return head | {
        "metadata": metadata,
        # The reference omits the default.
        **({"reclaimPolicy": policy} if policy != "Delete" else {}),
        "provisioner": of.provisioner,
        "parameters": of.class_parameters(storage_class.volume_type),
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": creation.offered.is_expandable,
    }


def _head(resource: Resource, name: str) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
    }


def _patch(change: model.ChangeClass, version: str) -> Mapping[str, object]:
    metadata: Json = {"resourceVersion": version}
    annotations = _recorded(change.type_id, change.choice)
    if change.is_default is not None:
        annotations[model.DEFAULT_CLASS] = "true" if change.is_default else None
        annotations[model.BETA_DEFAULT_CLASS] = None
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "allowVolumeExpansion": change.is_expandable}


def _recorded(type_id: str, choice: str) -> Json:
    """Return the annotations that record type ID and default of a class."""
    recorded = {model.TYPE_ID: type_id, model.DEFAULT_CHOICE: choice}
    return {key: value for key, value in recorded.items() if value}
