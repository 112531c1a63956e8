"""Events as they are read: for tools that show what was reported of an object."""

import datetime
import re

import msgspec

from lib.kube import client, listing, objects, resources

_PROGRESS = re.compile(r"ing(?=[A-Z]|$)")
"""Part of the reasons of Events that only report a begun operation, such as
EnsuringLoadBalancer and Provisioning."""


class AboutObject(msgspec.Struct, frozen=True, rename="camel"):
    """The object of an Event."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(msgspec.Struct, frozen=True):
    """The program that reported an Event."""

    component: str = ""


class EventSeries(msgspec.Struct, frozen=True, rename="camel"):
    """Repetitions of an Event."""

    last_observed_time: datetime.datetime | None = None


class RecordedEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One Event. Source: Kubernetes core/v1 Event."""

    metadata: objects.ObjectMeta
    involved_object: AboutObject = AboutObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    last_timestamp: datetime.datetime | None = None
    event_time: datetime.datetime | None = None
    series: EventSeries | None = None

    @property
    def at(self) -> datetime.datetime:
        """The time of the last repetition."""
        series = self.series.last_observed_time if self.series else None
        times = (self.last_timestamp, series, self.event_time)
        created = self.metadata.creation_timestamp
        reported = [time for time in (*times, created) if time is not None]
        return max(reported, default=datetime.datetime.min.replace(tzinfo=datetime.UTC))

    @property
    def is_progress(self) -> bool:
        """Whether it only reports that an operation has begun."""
        return self.type != "Warning" and bool(_PROGRESS.search(self.reason))


def read(
    api: client.Api, timeout_s: float, kind: str = ""
) -> tuple[RecordedEvent, ...]:
    """List Events, those of one kind of object or all: one call per page.

    Raises:
        KubeError: they cannot be listed.
    """
    selectors = {"fieldSelector": f"involvedObject.kind={kind}"} if kind else {}
    listed = listing.read(
        api,
        resources.EVENTS,
        RecordedEvent,
        timeout_s=timeout_s,
        selectors=selectors,
    )
    return tuple(sorted(listed.items, key=lambda event: event.at))


def problems(events: tuple[RecordedEvent, ...]) -> dict[str, str]:
    """Return the last problem of each object, by UID: "Reason: message". Pure.

    Empty for an object of which a later Event reports a success. events: by time.
    """
    last = {
        event.involved_object.uid: event for event in events if not event.is_progress
    }
    return {
        uid: f"{event.reason}: {event.message}"
        for uid, event in last.items()
        if event.type == "Warning"
    }
