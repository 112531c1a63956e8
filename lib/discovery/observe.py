"""All reads of a cycle: of the cloud in one call, of the cluster step by step."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import msgspec

from lib.cloud import catalog
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown
from lib.discovery import cycle_report, model
from lib.discovery.model import DiscoveryStep
from lib.kube import client, listing, resources, volume_references
from lib.kube import errors as kube_errors
from lib.kube import persistent_volumes as kube_volumes
from lib.kube.resources import Resource
from lib.process import decoding

TIMEOUT_S = 10.0
"""Of every call to the API server. Source: the reference's own."""
_PERIODS = 0.9
"""Share of a discovery period that must pass before a second read confirms a first one:
cycles are not exactly regular."""

_MODULE_CONFIG = "MODULE_CONFIG, the value moduleConfig of the chart"

T = TypeVar("T")
Shown = Callable[[DiscoveryStep], cycle_report.Pairs]
"""Returns the present samples of a step's metric."""


class CatalogObserver:
    """Reads for the steps; a failure concerns its step alone."""

    def __init__(
        self,
        clouds: catalog.Catalog,
        api: client.Api,
        settings: model.DiscoverySettings,
        shown: Shown,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clouds = clouds
        self._api = api
        self._settings = settings
        self._shown = shown
        self._clock = clock
        self._missing_since: dict[str, float] = {}
        self._is_configured = False
        self._source = ""

    def observe(
        self, steps: Collection[DiscoveryStep]
    ) -> Mapping[DiscoveryStep, model.Snapshot]:
        """Read for these steps; one snapshot each."""
        snapshots: dict[DiscoveryStep, model.Snapshot] = {}
        document: Mapping[str, object] = {}
        if DiscoveryStep.DISCOVERY_DATA in steps:
            try:
                document = self._installed()
            except (kube_errors.KubeError, model.InvalidCatalog) as error:
                snapshots[DiscoveryStep.DISCOVERY_DATA] = model.FailedStep(
                    DiscoveryStep.DISCOVERY_DATA, error
                )
        parts = {model.PARTS[step] for step in steps if step not in snapshots}
        if not self._settings.cluster_id:
            parts.discard(CatalogPart.VOLUMES)  # without an ID no volume is owned
        request = catalog.CatalogRequest(
            frozenset(parts), document, self._settings.cluster_id
        )
        reading = self._clouds.read(request)
        for step in DiscoveryStep:
            if step in steps and step not in snapshots:
                snapshots[step] = self._step(step, reading)
        return snapshots

    def _step(
        self, step: DiscoveryStep, reading: catalog.CatalogReading
    ) -> model.Snapshot:
        try:
            return self._snapshot(step, reading)
        except (kube_errors.KubeError, model.InvalidCatalog) as error:
            return model.FailedStep(step, error)
        except msgspec.DecodeError as error:
            unreadable = f"unexpected object of the API server: {error}"
            return model.FailedStep(step, model.InvalidCatalog(unreadable))
        except _CloudFailed as failed:
            return model.FailedStep(step, failed.of.error)

    def _snapshot(
        self, step: DiscoveryStep, reading: catalog.CatalogReading
    ) -> model.Snapshot:
        match step:
            case DiscoveryStep.CONDITIONS:
                return self._conditions(_value(reading.conditions, ()))
            case DiscoveryStep.INSTANCE_TYPES:
                offered = _value(reading.instance_types, ())
                catalogs = resources.INSTANCE_TYPES_CATALOGS
                stored = self._stored(catalogs, model.CATALOG)
                return model.ObservedInstanceTypes(offered, stored)
            case DiscoveryStep.DISCOVERY_DATA:
                return self._document(_value(reading.document, catalog.Document(b"")))
            case DiscoveryStep.ORPHANED_DISKS:
                return self._disks(_value(reading.volumes, ()))
            case DiscoveryStep.STORAGE_CLASSES:
                offers = _value(reading.storage_types, ())
                return self._classes(offers, self._stored_classes())

    def _stored_classes(self) -> tuple[model.StoredClass, ...]:
        provider = self._settings.provider
        stored = self._all(resources.STORAGE_CLASSES, model.StoredClass)
        return tuple(
            msgspec.structs.replace(
                stored_class,
                type_parameter=provider.type_parameter,
                our_provisioner=provider.provisioner,
            )
            for stored_class in stored
        )

    def _classes(
        self,
        offered: tuple[catalog.StorageType, ...],
        stored: tuple[model.StoredClass, ...],
    ) -> model.ObservedClasses:
        missing = self._missing(offered, stored)
        secret = self._stored(resources.SECRETS, self._settings.provider.data_secret)
        recorded = ""
        if secret is not None:
            metadata = decoding.decode(secret, model.StoredSecret).metadata
            recorded = metadata.annotations.get(model.DEFAULT_CHOICE, "")
        return model.ObservedClasses(offered, stored, missing, secret, recorded)

    def _installed(self) -> Mapping[str, object]:
        """Read the installer's document; a hybrid cluster has none.

        Raises:
            InvalidCatalog: it is no JSON object.
        """
        secret = self._stored(resources.SECRETS, model.INPUT_SECRET)
        self._is_configured = False
        self._source = _MODULE_CONFIG
        if secret is None:
            return self._settings.module_config
        data = decoding.decode(secret, model.StoredSecret).data
        self._is_configured = bool(data.get(model.INPUT_CONFIGURATION))
        if model.INPUT_KEY not in data:
            return self._settings.module_config
        name = f"{model.NAMESPACE}/{model.INPUT_SECRET}"
        self._source = f"Secret {name}, {model.INPUT_KEY}"
        try:
            return decoding.decode(data[model.INPUT_KEY], dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = f"{self._source}: invalid value: must be a JSON object"
            raise model.InvalidCatalog(text) from None

    def _conditions(
        self, conditions: tuple[catalog.Condition, ...]
    ) -> model.ObservedConditions:
        """Read the ConfigMap only if the cloud reports conditions."""
        shown = self._shown(DiscoveryStep.CONDITIONS)
        if not conditions:
            return model.ObservedConditions(conditions, shown)
        try:
            stored = self._stored(resources.CONFIG_MAPS, model.CONDITIONS_MAP)
        except kube_errors.Forbidden:
            return model.ObservedConditions(conditions, shown, may_store=False)
        return model.ObservedConditions(conditions, shown, stored)

    def _document(self, document: catalog.Document) -> model.ObservedDocument:
        decoded = decoding.decode(document.body, dict[str, object])
        named = self._settings.provider.problems(decoded)
        problems = tuple(map(self._with_source, named))
        stored = self._stored(resources.SECRETS, self._settings.provider.data_secret)
        return model.ObservedDocument(
            document.body, problems, stored, self._is_configured
        )

    def _with_source(self, problem: str) -> str:
        """Add to a problem of the document which field of the input has the value."""
        field = self._settings.provider.inputs.get(problem.partition(":")[0])
        return f"{problem} (from {field} of {self._source})" if field else problem

    def _disks(self, volumes: tuple[catalog.CatalogVolume, ...]) -> model.ObservedDisks:
        """Read the PersistentVolumes after the volumes of the cloud."""
        persistent: tuple[kube_volumes.PersistentVolume, ...] = ()
        claims: tuple[kube_volumes.VolumeClaim, ...] = ()
        if volumes:
            of = resources.PERSISTENT_VOLUMES
            persistent = self._all(of, kube_volumes.PersistentVolume)
        referenced = volume_references.references(persistent)
        if any(volume_references.is_orphan(volume, referenced) for volume in volumes):
            claims = self._claims()
        shown = self._shown(DiscoveryStep.ORPHANED_DISKS)
        return model.ObservedDisks(volumes, persistent, shown, claims)

    def _claims(self) -> tuple[kube_volumes.VolumeClaim, ...]:
        """Read the claims; none without the permission, which the reference lacks."""
        try:
            return self._all(resources.CLAIMS, kube_volumes.VolumeClaim)
        except kube_errors.Forbidden:
            return ()

    def _missing(
        self,
        offered: tuple[catalog.StorageType, ...],
        stored: tuple[model.StoredClass, ...],
    ) -> Mapping[str, model.MissingType]:
        """Return the state of the volume type of each class without a listed type.

        A type is read by its ID only after it was missing for a discovery period. The
        times are of this process: after a restart the period begins again.
        """
        if not offered:
            return {}
        missing = [c for c in stored if c.is_owned and not c.is_listed(offered)]
        now = self._clock()
        since = {c.metadata.uid: now for c in missing}
        self._missing_since = since | {
            uid: at for uid, at in self._missing_since.items() if uid in since
        }
        return {c.metadata.name: self._confirmed(c, now) for c in missing}

    def _confirmed(self, stored: model.StoredClass, now: float) -> model.MissingType:
        since = self._missing_since[stored.metadata.uid]
        if now - since < _PERIODS * self._settings.period_s:
            return model.MissingType.RECENT
        if not stored.type_id:
            return model.MissingType.UNKNOWN
        exists = self._clouds.has_storage_type(stored.type_id)
        if isinstance(exists, Unknown):
            return model.MissingType.UNKNOWN
        return model.MissingType.EXISTS if exists.value else model.MissingType.ABSENT

    def _stored(self, resource: Resource, name: str) -> bytes | None:
        namespace = model.NAMESPACE if resource.namespaced else None
        try:
            return self._api.read(resource, name, namespace, timeout_s=TIMEOUT_S)
        except kube_errors.NotFound:
            return None

    def _all(self, resource: Resource, of: type[T]) -> tuple[T, ...]:
        return listing.read(self._api, resource, of, timeout_s=TIMEOUT_S).items


class _CloudFailed(Exception):
    """A part of the cloud could not be read."""

    def __init__(self, of: Unknown) -> None:
        super().__init__(str(of.error))
        self.of = of


def _value(part: Seen[T] | Unknown | None, nothing: T) -> T:
    if isinstance(part, Unknown):
        raise _CloudFailed(part)
    return nothing if part is None else part.value
