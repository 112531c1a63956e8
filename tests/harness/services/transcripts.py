"""What the owner of a Service is shown, so that two who serve it can be compared."""

import dataclasses
import json
from collections.abc import Mapping, Sequence

from lib.lab.kube.kube_objects import Json
from tests.harness.services import services

RecordedEvent = tuple[str, str, str, str]
"""An Event of a Service: component, type, reason and message."""


@dataclasses.dataclass(frozen=True)
class Transcript:
    """What a user has seen of a Service, ids and addresses left out.

    events: each once; both look twice at what is new.
    """

    events: frozenset[RecordedEvent]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    status: str


def of(service: Json, events: Sequence[Json]) -> Transcript:
    """Gather what the owner of a Service has seen.

    events: all of its namespace, at least.
    """
    about, status = service["metadata"], json.dumps(service["status"], sort_keys=True)
    changing = {services.balancer_id(service): "<id>"}
    for entry in services.ingress(service):
        changing[entry.get("ip", "")] = "<address>"
        changing[about["annotations"].get(services.LOAD_BALANCER_ADDRESS, "")] = (
            "<address>"
        )

    def plain(text: str) -> str:
        for word, replacement in changing.items():
            text = text.replace(word, replacement) if word else text
        return text

    return Transcript(
        frozenset(
            (
                each["source"]["component"],
                each["type"],
                each["reason"],
                plain(each["message"]),
            )
            for each in events
            if each["involvedObject"]["uid"] == about["uid"]
        ),
        {key: plain(value) for key, value in about["annotations"].items()},
        tuple(about.get("finalizers", ())),
        plain(status),
    )
