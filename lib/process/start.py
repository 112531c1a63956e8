"""The first entry that a process logs: version, flags and leader election."""

import dataclasses
import platform
import uuid

from lib.process import flags, logs, metrics


@dataclasses.dataclass(frozen=True, slots=True)
class StartSettings:
    """What a daemon logs, and what its first entry describes.

    verbosity, format: of --v and --logging-format. values: the flags. lease: namespace
    and name of the Lease, empty without leader election. identity: of this process in
    it.
    """

    verbosity: int
    format: str
    values: flags.Values
    lease: str = ""
    identity: str = ""


def new_identity() -> str:
    """Return a holder identity for a new process: its host, and a UUID.

    Source: k8s.io/cloud-provider app.Run.
    """
    return f"{platform.node()}_{uuid.uuid4()}"


def log_start(build: metrics.Build, settings: StartSettings) -> None:
    """Set logging up and write the first entry; warn of flags without effect."""
    logs.configure(
        logs.LogSettings(build.component, settings.verbosity, settings.format)
    )
    log = logs.get(__name__)
    election = {"lease": settings.lease, "identity": settings.identity}
    start_log = log.bind(commit=build.revision) if build.revision else log
    start_log.info(
        "starting",
        version=build.version,
        flags=settings.values.changed(),
        **(election if settings.lease else {}),
    )
    flags.warn(settings.values, log)
