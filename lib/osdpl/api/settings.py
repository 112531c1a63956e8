"""OsdplSettings that may change while the controller runs. Pure.

Rules: a setting is applied, or reported as one without effect; one that is malformed is
reported, and the value below it counts.

Source: the reference's ini files, sections osctl, helmbundle and maintenance, which are
also the content of its ConfigMap rockoon-config.
"""

import configparser
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from lib.process import config
from lib.process.config import FieldProblem

CONFIG_MAP = "rockoon-config"
SECONDS_MAX = 7 * 24 * 3600
"""Of each time: helm refuses durations that do not fit into 64 bits of nanoseconds."""
"""ConfigMap with ini files, in the namespace that is served."""


@dataclasses.dataclass(frozen=True, slots=True)
class OsdplSettings:
    """Times that a reconciliation uses, in seconds.

    ready_timeout_s: after a run of helm, before workloads that are not Ready are
    reported as a failure of an upgrade. ready_delay_s: after a run, before readiness
    counts: the watches have delivered what the run has written by then. helm_timeout_s:
    of each operation within a helm run; None: that of the flag. services: overrides of
    ready_timeout_s and ready_delay_s by service. ignored: a text per setting without
    effect, or malformed.
    """

    ready_timeout_s: float = 1200.0
    ready_delay_s: float = 10.0
    helm_timeout_s: float | None = None
    services: Mapping[str, Mapping[str, float]] = dataclasses.field(
        default_factory=dict
    )
    ignored: tuple[str, ...] = ()

    def timeout_s(self, service: str) -> float:
        """Return the time-out of the readiness of a service."""
        return self.services.get(service, {}).get("timeout", self.ready_timeout_s)

    def delay_s(self, service: str) -> float:
        """Return the time before the readiness of a service counts."""
        return self.services.get(service, {}).get("delay", self.ready_delay_s)


_APPLIED: Mapping[tuple[str, str], tuple[str, int]] = {
    ("osctl", "wait_application_ready_timeout"): ("ready_timeout_s", 1),
    ("osctl", "wait_application_ready_delay"): ("ready_delay_s", 0),
    ("helmbundle", "helm_cmd_timeout"): ("helm_timeout_s", 1),
}
"""Field and least value of each setting that is applied."""
_MAINTENANCE = "maintenance of nodes is not supported yet"
_EVENTS = "what it waits for is watched, not polled"
_IGNORED: Mapping[tuple[str, str], str] = {
    ("osctl", "node_not_ready_flapping_timeout"): _MAINTENANCE,
    ("osctl", "max_workers"): "a reconciliation never waits; see --helm-slots",
    ("osctl", "octavia_lb_failover_job_timeout"): "load-balancer is not supported yet",
    **{
        ("helmbundle", f"manifest_{name}"): _EVENTS
        for name in (
            *("enable_timeout", "enable_delay", "disable_timeout", "disable_delay"),
            *("purge_timeout", "purge_delay", "apply_delay"),
        )
    },
    ("helmbundle", "helm_max_retries"): "retries wait 5 s to 5 minutes, and go on",
    **{
        ("maintenance", name): _MAINTENANCE
        for name in (
            *("instance_migrate_concurrency", "nwl_parallel_max_compute"),
            *("nwl_parallel_max_gateway", "respect_nova_az"),
            *("ndr_skip_instance_check", "ndr_skip_volume_check"),
            "automated_openvswitch_restart",
        )
    },
}
"""Why each other setting of the reference has no effect."""
KNOWN = (*_APPLIED, *_IGNORED)
_SERVICES = {"nova": "compute", "neutron": "networking"}
"""Service of each key of spec.timeouts.application_readiness."""


def read(files: Mapping[str, str]) -> OsdplSettings:
    """Return the settings of ini files; a later file overrides an earlier one.

    files: content by name.
    """
    fields: dict[str, float] = {}
    ignored: list[str] = []
    for name, text in files.items():
        parser = configparser.ConfigParser(interpolation=None, default_section="")
        try:
            parser.read_string(text)
        except configparser.Error as error:
            words = str(error).splitlines()[0]
            ignored.append(f"{name}: {words}: must be sections with keys and values")
            continue
        for section in parser.sections():
            for key, value in parser.items(section):
                setting = _setting(section, key, value)
                if isinstance(setting, str):
                    ignored.append(f"{name} {setting}")
                else:
                    fields |= setting
    base = OsdplSettings(ignored=tuple(dict.fromkeys(ignored)))
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


def _setting(section: str, key: str, value: str) -> dict[str, float] | str:
    """Return the field that a setting is, or why it has no effect."""
    sections = sorted({section for section, _ in KNOWN})
    if section not in sections:
        hint = f": must be one of {', '.join(sections)}"
        return str(config.unknown(f"[{section}]", "section", hint))
    if (section, key) in _IGNORED:
        return f"[{section}] {key}: no effect: {_IGNORED[section, key]}"
    if (section, key) not in _APPLIED:
        keys = ", ".join(name for own, name in KNOWN if own == section)
        hint = f": must be one of {keys}"
        return str(config.unknown(f"[{section}] {key}", "key", hint))
    field, least = _APPLIED[section, key]
    if not value.isdecimal() or not least <= float(value) <= SECONDS_MAX:
        expected = _seconds(float(value) if value.isdecimal() else 0.0, least)
        return str(FieldProblem(f"[{section}] {key}", value, expected))
    return {field: float(value)}


def _seconds(value: float, least: int) -> str:
    """Return what a number of seconds must be."""
    if value > SECONDS_MAX:
        return f"a number of seconds, at most {SECONDS_MAX}"
    return f"a number of seconds, {least} or more"


def with_spec(settings: OsdplSettings, spec: Mapping[str, Any]) -> OsdplSettings:
    """Return settings with what spec.timeouts overrides."""
    readiness = (spec.get("timeouts") or {}).get("application_readiness") or {}
    services = {
        _SERVICES[name]: {key: float(value) for key, value in times.items()}
        for name, times in readiness.items()
        if name in _SERVICES and times
    }
    return dataclasses.replace(settings, services=services)


def problems(spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Yield the problems of the times in spec.timeouts."""
    readiness = (spec.get("timeouts") or {}).get("application_readiness") or {}
    for name, times in readiness.items():
        for key, least in (("timeout", 1), ("delay", 0)):
            value = (times or {}).get(key)
            if value is not None and not least <= value <= SECONDS_MAX:
                path = f"spec.timeouts.application_readiness.{name}.{key}"
                yield FieldProblem(path, str(value), _seconds(value, least))
