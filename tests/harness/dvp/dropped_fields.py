"""Fields of requests that the API server of a parent dropped, by its audit log.

A real API server accepts a field that the definition does not name, and drops it. The
log is read when a parent stops, so that every test of a batch is judged.
"""

import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

_ACCOUNT = "system:serviceaccount:"


def dropped(sent: object, kept: object, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that were sent, and are not in what was kept."""
    if isinstance(sent, dict):
        fields = kept if isinstance(kept, dict) else {}
        for name, value in sent.items():
            inner = f"{path}.{name}"
            if name not in fields:
                if value is not None:
                    yield inner
            else:
                yield from dropped(value, fields[name], inner)
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for place, (value, other) in enumerate(zip(sent, kept, strict=True)):
            yield from dropped(value, other, f"{path}[{place}]")


def of_log(file: pathlib.Path) -> Sequence[str]:
    """Return a line for each field that was dropped, once.

    Of requests of projects' users, which are those of the programs; and of every
    status, which the simulator writes as well.

    Source: Kubernetes audit.k8s.io/v1 Event.
    """
    lines: dict[str, None] = {}
    with file.open("rb") as log:
        for line in log:
            if b'"requestObject"' in line and line.endswith(b"\n"):
                lines |= dict.fromkeys(_of_event(json.loads(line)))
    return tuple(lines)


def _of_event(event: dict[str, Any]) -> Iterator[str]:
    target = event.get("objectRef", {})
    is_status = target.get("subresource") == "status"
    is_of_program = event["user"].get("username", "").startswith(_ACCOUNT)
    if event.get("responseStatus", {}).get("code", 0) >= 300:
        return
    if not (is_status or is_of_program):
        return
    part = "status" if is_status else "spec"
    sent = (event.get("requestObject") or {}).get(part) or {}
    kept = (event.get("responseObject") or {}).get(part) or {}
    agent = event.get("userAgent", "").partition(" ")[0]
    for path in dropped(sent, kept, f".{part}"):
        yield f"{agent}: {event['verb']} {target.get('resource')}: {path}"
