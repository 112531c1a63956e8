"""Jobs of the engine behind writes to disks: whether they have ended, and how.

A disk may be "ok" before its job has ended, and is locked for other work until then.
"""

import dataclasses

from lib.cloud import errors
from lib.cloud.zvirt import api_paths, client, engine_refusals
from lib.cloud.zvirt.documents import Item

_STARTED = "started"
_FAILED = frozenset({"failed", "aborted"})
_EVENTS = 3
_TEXTS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class JobState:
    """The jobs of one correlation ID. failure: why the last one failed; empty: not."""

    is_running: bool = False
    failure: str = ""


def read(
    access: client.EngineClient, correlation_id: str, timeout_s: float
) -> JobState:
    """Read the jobs of requests; one that the engine has forgotten has ended.

    Raises:
        CloudError: they are not known.
    """
    search = f"correlation_id={api_paths.quoted(correlation_id)}"
    jobs = access.list("jobs", {"search": search}, timeout_s=timeout_s)
    if any(job.status == _STARTED for job in jobs):
        return JobState(is_running=True)
    last = max(jobs, key=_begin, default=None)
    if last is None or last.status not in _FAILED:
        return JobState()
    text = _failure(access, search, timeout_s)
    return JobState(failure=text or f"the job {last.id} of the engine {last.status}")


def _begin(job: Item) -> str:
    return str(job.entity.start_time or "")


def _failure(access: client.EngineClient, search: str, timeout_s: float) -> str:
    """Return what the events of a failed job report."""
    query = {"search": f"{search} and severity=error", "max": str(_EVENTS)}
    events = access.list("events", query, timeout_s=timeout_s)
    texts = dict.fromkeys(str(event.entity.description or "") for event in events)
    return "; ".join([*filter(None, texts)][:_TEXTS])


def is_for_space(failure: str) -> bool:
    """Report whether a job failed because the domain, or a quota, has no room."""
    kind = engine_refusals.classify(409, failure, is_fault=True)
    return kind in (errors.Unplaceable, errors.QuotaExceeded)
