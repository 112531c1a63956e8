"""States that do not end: what their Events, metrics and alerts show over time."""

import dataclasses
import pathlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import prometheus_client
import yaml

from lib.kube import events, resources
from lib.kube.fake import api as fake_api

ALERTS = pathlib.Path("charts/openstack-ccm/files/alerts.yaml")
JOB = "openstack-ccm"
SENDS = 200
Sample = Mapping[str, float]


def series(name: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series."""
    inner = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{inner}}}"


@dataclasses.dataclass
class Samples:
    """Values of all gauges of a registry, by time in seconds."""

    registry: prometheus_client.CollectorRegistry
    taken: list[tuple[float, Sample]] = dataclasses.field(default_factory=list)

    def take(self, now_s: float) -> None:
        """Read all gauges."""
        sample = {
            series(each.name, each.labels): each.value
            for family in self.registry.collect()
            if family.type == "gauge"
            for each in family.samples
        }
        self.taken.append((now_s, sample))

    @property
    def last(self) -> Sample:
        """The values that were read last."""
        return self.taken[-1][1]


def rules() -> Mapping[str, Mapping[str, Any]]:
    """Return the alert rules of the chart of openstack-ccm by name."""
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def fires(rule: Mapping[str, Any], samples: Sequence[tuple[float, Sample]]) -> bool:
    """Report whether a rule `max by (..) (metric{..}) > 0` fires with these samples."""
    name, matchers = re.findall(r"(\w+)\{([^}]*)\}", rule["expr"])[0]
    assert re.fullmatch(r"max by \(.*\) \(\w+\{job=[^}]*\}\) > 0", rule["expr"])
    assert matchers == f'job="{JOB}"'
    minutes = int(rule["for"].removesuffix("m"))
    since: float | None = None
    for at, sample in samples:
        values = [
            value
            for name_of, value in sample.items()
            if name_of == name or name_of.startswith(f"{name}{{")
        ]
        if max(values, default=0.0) <= 0:
            since = None
        elif since is None:
            since = at
        elif at - since >= minutes * 60:
            return True
    return False


def send(recorders: Iterable[events.Recorder], sleep: Callable[[float], None]) -> None:
    """Send the Events that wait. sleep: passes time where too many come at once."""
    for recorder in recorders:
        stop = threading.Event()
        sender = threading.Thread(target=recorder.run, args=(stop,), daemon=True)
        sender.start()
        sent = False
        for _ in range(SENDS):
            if sent := recorder.flush(0.05):
                break
            sleep(1.0)
        stop.set()
        sender.join()
        assert sent


def warnings_since(api: fake_api.FakeApi, began_s: float) -> set[tuple[str, str, str]]:
    """Return name of the object, reason and message of Warnings of a time.

    began_s: by the clock of the recorders, which counts from the epoch.
    """
    stored: list[dict[str, Any]] = [dict(e) for e in api.all(resources.EVENTS)]
    return {
        (event["involvedObject"]["name"], event["reason"], event["message"])
        for event in stored
        if event["type"] == "Warning" and _seconds(event["lastTimestamp"]) >= began_s
    }


def _seconds(text: str) -> float:
    days, hours, minutes, seconds = (int(n) for n in re.findall(r"\d+", text)[2:6])
    return ((days - 1) * 24 + hours) * 3600 + minutes * 60 + seconds
