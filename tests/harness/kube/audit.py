"""Requests of a user from the audit log of the lab's API server."""

import dataclasses
import functools
import json
from collections.abc import Mapping

from lib.lab import places

_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_STAGES = ("ResponseStarted", "ResponseComplete")
"""A watch is written down when it starts, and again when it ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One request, answered. Empty texts mean "none".

    agent: the client's name and version. credential: id of the token it came with.
    received: when, in RFC 3339. body: the object it left behind, where the audit
    policy says so.
    """

    verb: str
    group: str
    resource: str
    subresource: str
    name: str
    agent: str
    code: int
    credential: str
    received: str
    body: Mapping[str, object]

    @property
    def version(self) -> int:
        """Revision of the resulting object; 0 if it is not in the log."""
        meta = self.body.get("metadata")
        return int(meta.get("resourceVersion", 0)) if isinstance(meta, dict) else 0


def rows(where: places.Places, account: tuple[str, str]) -> tuple[Row, ...]:
    """Return the requests of a ServiceAccount, in the order of their answers.

    account: namespace and name.

    Source: Kubernetes audit.k8s.io/v1 Event.
    """
    user = f"system:serviceaccount:{account[0]}:{account[1]}"
    name = user.encode()
    with (where.log / "audit.log").open("rb") as log:
        read = _read(log.readline(), user)
        log.seek(read.end)
        for line in log:
            if not line.endswith(b"\n"):
                break  # it is being written
            read.end += len(line)
            if name not in line:
                continue  # quicker than to read what others have done
            event = json.loads(line)
            if event["user"]["username"] == user and event["stage"] in _STAGES:
                read.rows.append(_row(event))
    return tuple(read.rows)


@dataclasses.dataclass
class _Read:
    """What was read of a log so far, as tests ask repeatedly. end: in bytes."""

    end: int = 0
    rows: list[Row] = dataclasses.field(default_factory=list)


@functools.cache
def _read(first: bytes, user: str) -> _Read:
    """Return the same one for the same log. first: its first line, with a UUID."""
    del first, user
    return _Read()


def _row(event: Mapping[str, dict[str, object]]) -> Row:
    about = event.get("objectRef", {})
    extra = event["user"].get("extra", {})
    credentials = extra.get(_CREDENTIAL, [""]) if isinstance(extra, dict) else [""]
    code = event.get("responseStatus", {}).get("code", 0)
    return Row(
        verb=str(event["verb"]),
        group=str(about.get("apiGroup", "")),
        resource=str(about.get("resource", "")),
        subresource=str(about.get("subresource", "")),
        name=str(about.get("name", "")),
        agent=str(event.get("userAgent", "")),
        code=code if isinstance(code, int) else 0,
        credential=str(credentials[0]),
        received=str(event["requestReceivedTimestamp"]),
        body=event.get("responseObject", {}),
    )
