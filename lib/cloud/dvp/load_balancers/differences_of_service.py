"""How an object of the parent differs from the desired one, and its patch. Pure."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import (
    ParentKind,
    ParentPort,
    ParentService,
    ParentServiceSpec,
)
from lib.cloud.dvp.load_balancers import lb_names
from lib.cloud.dvp.load_balancers.desired_service import (
    DesiredParentPort,
    DesiredService,
)
from lib.cloud.dvp.load_balancers.observed_service import TYPE
from lib.cloud.explained import FieldChange

Json = dict[str, object]
_PROBE_TIMEOUT = {"timeoutSeconds": 1}
_PROBE_TIMES = {"initialDelaySeconds": 10, "periodSeconds": 10}
"""Values are those of the reference. The time limit belongs to each probe: the platform
drops the field that the reference sends beside them.

Source: deckhouse modules/030-cloud-provider-dvp, images/dvp-common/api, and the type
ServiceWithHealthchecks.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceDifference:
    """One field: its section and key in the document, and both values as text.

    value: what a merge patch sets there; None removes it.
    """

    section: str
    key: str
    old: str
    new: str
    value: object

    @property
    def change(self) -> FieldChange:
        """The difference for people."""
        return FieldChange(f"{self.section}.{self.key}", self.old, self.new)


def of(
    desired: DesiredService,
    kind: ParentKind[ParentService],
    service: ParentService,
    cluster_uuid: str,
) -> tuple[ServiceDifference, ...]:
    """Return all differences; what the parent adds by itself is none."""
    return (
        *_labels(desired, service, cluster_uuid),
        *_annotations(desired, service.metadata.annotations),
        *_spec(desired, service),
        *_of_kind(desired, kind, service),
    )


def patch(uid: str, differences: Iterable[ServiceDifference]) -> Json:
    """Return the merge patch for the object with that UID."""
    document: Json = {"metadata": {"uid": uid}}
    for difference in differences:
        section = document
        for part in difference.section.split("."):
            below = section.setdefault(part, {})
            if not isinstance(below, dict):
                raise TypeError(f"{difference.section} is no object")
            section = below
        section[difference.key] = difference.value
    return document


def document(
    desired: DesiredService, kind: ParentKind[ParentService], cluster_uuid: str
) -> Json:
    """Return the object to be created."""
    nothing = ParentService(kinds.ParentServiceMeta())
    body = patch("", of(desired, kind, nothing, cluster_uuid))
    metadata, spec = body["metadata"], body["spec"]
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise TypeError("an object has metadata and spec")
    del metadata["uid"]
    labels = ownership.labels_of(cluster_uuid, desired.uid)
    annotations = metadata.get("annotations", {})
    metadata |= {
        "name": desired.name,
        "labels": labels,
        "annotations": {**annotations, lb_names.SERVICE_ANNOTATION: desired.service},
    }
    if kind is not kinds.SERVICES:
        spec["healthcheck"] = {**_PROBE_TIMES, "probes": _probes(desired.ports)}
    if kind is kinds.SERVICES and desired.load_balancer_class:
        spec["loadBalancerClass"] = desired.load_balancer_class
    return body


def _labels(
    desired: DesiredService, service: ParentService, cluster_uuid: str
) -> Iterator[ServiceDifference]:
    labels = service.metadata.labels
    owned = {ownership.CLUSTER: cluster_uuid, ownership.OWNER_UID: desired.uid}
    for key, value in owned.items():
        if labels.get(key) != value:
            yield ServiceDifference(
                "metadata.labels", key, labels.get(key, ""), value, value
            )


def _annotations(
    desired: DesiredService, annotations: Mapping[str, str]
) -> Iterator[ServiceDifference]:
    """Copy annotations, and remove those that were copied and do not exist any more.

    The record of copied keys is only written together with an annotation: what the
    reference has copied is adopted as it is.
    """
    section, copied = "metadata.annotations", dict(desired.annotations)
    recorded = annotations.get(lb_names.COPIED_ANNOTATION, "")
    changed = False
    for key, value in copied.items():
        if annotations.get(key) != value:
            changed = True
            yield ServiceDifference(
                section, key, annotations.get(key, ""), value, value
            )
    former = dict.fromkeys(filter(None, recorded.split(",")))
    # Those that the reference has copied are not recorded.
    former |= dict.fromkeys(
        key for key, value in desired.withheld if annotations.get(key) == value
    )
    for key in former:
        if key not in copied:
            changed = True
            if key in annotations:
                yield ServiceDifference(section, key, annotations[key], "", None)
    record = ",".join(copied)
    if changed and record != recorded:
        key = lb_names.COPIED_ANNOTATION
        yield ServiceDifference(section, key, recorded, record, record or None)


def _spec(
    desired: DesiredService, service: ParentService
) -> Iterator[ServiceDifference]:
    spec = service.spec
    if spec.type != TYPE:
        yield ServiceDifference("spec", "type", spec.type, TYPE, TYPE)
    yield from _selector(desired, spec.selector or {})
    ports = tuple(map(_observed_port, spec.ports or ()))
    if ports != desired.ports:
        body = [_port(port) for port in desired.ports]
        old, new = _shown_ports(ports), _shown_ports(desired.ports)
        yield ServiceDifference("spec", "ports", old, new, body)
    policy = "Local" if desired.is_local else "Cluster"
    if (spec.external_traffic_policy or "Cluster") != policy or not spec.type:
        old = spec.external_traffic_policy
        yield ServiceDifference("spec", "externalTrafficPolicy", old, policy, policy)


def _selector(
    desired: DesiredService, selector: Mapping[str, str]
) -> Iterator[ServiceDifference]:
    key = lb_names.label_key(desired.name)
    new = {key: lb_names.LABEL_VALUE}
    if dict(selector) != new:
        # A merge patch keeps what it does not name.
        value: dict[str, str | None] = {**dict.fromkeys(selector), **new}
        old = ", ".join(f"{name}={text}" for name, text in sorted(selector.items()))
        shown = f"{key}={lb_names.LABEL_VALUE}"
        yield ServiceDifference("spec", "selector", old, shown, value)


def _of_kind(
    desired: DesiredService, kind: ParentKind[ParentService], service: ParentService
) -> Iterator[ServiceDifference]:
    """Compare what only one of the two kinds has; see `only_plain`."""
    spec = service.spec
    if kind is kinds.SERVICES:
        yield from _of_plain(desired, spec)
        return
    probes = () if spec.healthcheck is None else spec.healthcheck.probes or ()
    probed = [None if probe.tcp is None else probe.tcp.target_port for probe in probes]
    expected = _probed(desired.ports)
    if probed != expected:
        old, new = (", ".join(map(str, ports)) for ports in (probed, expected))
        body = _probes(desired.ports)
        yield ServiceDifference("spec.healthcheck", "probes", old, new, body)


def _of_plain(
    desired: DesiredService, spec: ParentServiceSpec
) -> Iterator[ServiceDifference]:
    lists = {
        "externalIPs": (spec.external_ips or (), desired.external_ips),
        "loadBalancerSourceRanges": (
            spec.load_balancer_source_ranges or (),
            desired.source_ranges,
        ),
    }
    for key, (old, new) in lists.items():
        if old != new:
            value = list(new) or None
            yield ServiceDifference("spec", key, ", ".join(old), ", ".join(new), value)
    address = desired.load_balancer_ip
    if spec.load_balancer_ip != address:
        was = spec.load_balancer_ip
        yield ServiceDifference("spec", "loadBalancerIP", was, address, address or None)


def _probed(ports: tuple[DesiredParentPort, ...]) -> list[int]:
    """Return the ports that are probed; UDP cannot be."""
    return [port.target_port for port in ports if port.protocol == "TCP"]


def _probes(ports: tuple[DesiredParentPort, ...]) -> list[Json]:
    return [
        {"mode": "TCP", "tcp": {"targetPort": target}, **_PROBE_TIMEOUT}
        for target in _probed(ports)
    ]


def _observed_port(port: ParentPort) -> DesiredParentPort:
    target = port.target_port if isinstance(port.target_port, int) else 0
    return DesiredParentPort(port.name, port.protocol, port.port, target)


def _port(port: DesiredParentPort) -> Json:
    body: Json = {
        "protocol": port.protocol,
        "port": port.port,
        "targetPort": port.target_port,
    }
    return {"name": port.name, **body} if port.name else body


def _shown_ports(ports: tuple[DesiredParentPort, ...]) -> str:
    return ", ".join(
        f"{port.port}/{port.protocol} to {port.target_port}" for port in ports
    )
