"""Manifests of all releases of one cloud, as `judge` reads them. Pure."""

import base64
import binascii
import configparser
import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

Manifest = dict[str, Any]

KEY_REFERENCES = {"Secret": "secretKeyRef", "ConfigMap": "configMapKeyRef"}
"""Field of `valueFrom` by kind."""


@dataclasses.dataclass(frozen=True, slots=True)
class Object:
    """Object of a release."""

    release: str
    manifest: Manifest

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.manifest["metadata"]["name"])

    @property
    def spec(self) -> Manifest:
        """Spec of the object, empty if it has none."""
        return self.manifest.get("spec") or {}

    def __str__(self) -> str:
        """Return kind and name, as in messages."""
        return f"{self.kind}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Pods:
    """Pods of one workload or Job: template: labels and spec."""

    owner: Object
    labels: Mapping[str, str]
    spec: Manifest

    @property
    def containers(self) -> list[Manifest]:
        """All containers, those of the start first."""
        return [*(self.spec.get("initContainers") or []), *self.spec["containers"]]


@dataclasses.dataclass(frozen=True)
class CloudManifests:
    """Releases of one cloud: their objects and their values, by release."""

    objects: tuple[Object, ...]
    values: Mapping[str, Manifest]

    @functools.cached_property
    def by_name(self) -> dict[tuple[str, str], Object]:
        """Objects by kind and name."""
        return {(entry.kind, entry.name): entry for entry in self.objects}

    @functools.cached_property
    def pods(self) -> tuple[Pods, ...]:
        """Pods of all workloads and Jobs."""
        return tuple(pods for entry in self.objects for pods in _pods(entry))

    def of_kind(self, *kinds: str) -> Iterator[Object]:
        """Return the objects of some kinds."""
        return (entry for entry in self.objects if entry.kind in kinds)

    def selected(self, labels: Mapping[str, str]) -> tuple[Pods, ...]:
        """Return the pods with labels."""
        return tuple(
            pods
            for pods in self.pods
            if labels and labels.items() <= pods.labels.items()
        )

    def env(self, container: Manifest) -> dict[str, str]:
        """Return the environment of a container, references resolved."""
        rows = {
            row["name"]: row.get("value", self._referred(row.get("valueFrom") or {}))
            for row in container.get("env") or []
        }
        return {name: str(value) for name, value in rows.items() if value is not None}

    def _referred(self, source: Manifest) -> str | None:
        for kind, field in KEY_REFERENCES.items():
            key = source.get(field)
            if key and (kind, key["name"]) in self.by_name:
                return texts(self.by_name[kind, key["name"]]).get(key["key"])
        return None

    @functools.cached_property
    def texts(self) -> tuple[tuple[Object, str, str], ...]:
        """All that programs read: owner, file or variable, and text."""
        files = [
            (entry, key, text)
            for entry in self.of_kind("Secret", "ConfigMap")
            for key, text in texts(entry).items()
        ]
        variables = [
            (pods.owner, str(row["name"]), str(row["value"]))
            for pods in self.pods
            for container in pods.containers
            for row in container.get("env") or []
            if row.get("value")
        ]
        return (*files, *variables)

    def settings(self) -> Iterator[tuple[Object, str, configparser.RawConfigParser]]:
        """Return owner, file name and content of each configuration file."""
        for entry in self.of_kind("Secret", "ConfigMap"):
            for key, text in texts(entry).items():
                parsed = ini(key, text)
                if parsed is not None:
                    yield entry, key, parsed


def of_releases(
    manifests: Mapping[str, list[Manifest]], values: Mapping[str, Manifest]
) -> CloudManifests:
    """Return the cloud of rendered releases."""
    objects = [
        Object(release, manifest)
        for release, of_release in manifests.items()
        for manifest in of_release
    ]
    return CloudManifests(tuple(objects), values)


def texts(entry: Object) -> dict[str, str]:
    """Return the decoded content of a Secret or ConfigMap by key."""
    data = entry.manifest.get("data") or {}
    if entry.kind == "Secret":
        data = {key: _decoded(str(value or "")) for key, value in data.items()}
    return {
        str(key): str(value)
        for key, value in (data | (entry.manifest.get("stringData") or {})).items()
    }


def ini(name: str, text: str) -> configparser.RawConfigParser | None:
    """Return a configuration file of oslo.config, None if it is none.

    An option that is given several times keeps its last value.
    """
    if not name.endswith((".conf", ".ini")) or not text.lstrip().startswith("["):
        return None
    parsed = configparser.RawConfigParser(
        strict=False, allow_no_value=True, default_section="", delimiters=("=",)
    )
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parsed.read_string(text)
    except configparser.Error:
        return None
    return parsed


def json_list(text: str) -> list[Manifest]:
    """Return a JSON list, empty for no text."""
    rows: list[Manifest] = json.loads(text) if text else []
    return rows


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return text


def _pods(entry: Object) -> Iterator[Pods]:
    spec = entry.spec
    if entry.kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    template = spec.get("template") or {}
    if entry.kind == "Pod":
        template = entry.manifest
    if "containers" in (template.get("spec") or {}):
        labels = (template.get("metadata") or {}).get("labels") or {}
        yield Pods(entry, labels, template["spec"])
