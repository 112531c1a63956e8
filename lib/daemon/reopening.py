"""A cloud that is opened again when the files it was opened from change.

Rules: a call that is under way ends on the cloud it began on; a cloud that can't be
opened, or that is another project or region than the one in which objects were
observed, leaves the old one in place, is reported once, and is retried.
"""

import dataclasses
import threading
from collections.abc import Callable
from typing import TypeVar

from lib.cloud import errors, protocol
from lib.cloud.support import source
from lib.process import config, logs

T = TypeVar("T")

LOOK_S = 2.0
"""Between two checks of the files."""
Opened = source.Opened
MOST_SKIPPED = 14
"""Checks without a retry after repeated failures: a lockout may follow otherwise."""


class Reopening:
    """Holds the cloud that is in use, and replaces it. Safe for many threads."""

    def __init__(self, open_cloud: Callable[[], Opened]) -> None:
        """open_cloud: reads the files and opens the cloud; asks nothing of it yet.

        Raises:
            ConfigError: of the first opening.
        """
        self._open = open_cloud
        self._log = logs.get(__name__)
        self._opened = open_cloud()
        self._is_due = False
        self._told = ""
        self._failures = 0
        self._skipped = 0
        self._after: list[Callable[[], None]] = []
        self._warn()

    def _warn(self) -> None:
        for warning in self._opened.warnings:
            self._log.warning("configuration warning", reason=warning)

    def part(self, of: Callable[[protocol.Cloud], T | None]) -> Callable[[], T] | None:
        """Return what gives one part of the cloud in use; None: it has no such part.

        of: takes the part from a cloud. A call that is under way keeps the part that it
        was given at its beginning.
        """
        if of(self._opened.cloud) is None:
            return None

        def now() -> T:
            part = of(self._opened.cloud)
            if part is None:  # `_require_same_kinds` refuses such a cloud
                raise TypeError("the cloud was opened again without one of its parts")
            return part

        return now

    def after(self, fn: Callable[[], None]) -> None:
        """Call fn whenever the cloud has been replaced. Before `run` only."""
        self._after.append(fn)

    def run(self, stop: threading.Event) -> None:
        """Check the files until `stop` is set."""
        while not stop.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        """Open the cloud again if its files have changed. For one thread."""
        if self._opened.changed():
            self._is_due, self._failures, self._skipped = True, 0, 0
        if not self._is_due or self._is_too_early():
            return
        try:
            opened = self._open()
            self._require_same_kinds(opened.cloud)
            if opened.cloud.check_reload is not None:
                opened.cloud.check_reload()
        except (config.ConfigError, errors.CloudError) as error:
            # Messages of both never hold secrets; see lib/process/config.py.
            self._refuse(error)
            return
        self._opened = opened
        self._is_due = False
        self._told = ""
        self._log.info("configuration reloaded")
        self._warn()
        for fn in self._after:
            fn()

    def _is_too_early(self) -> bool:
        """Report whether this look is one of those skipped after failures."""
        if self._skipped >= min(self._failures - 1, MOST_SKIPPED):
            return False
        self._skipped += 1
        return True

    def _refuse(self, error: config.ConfigError | errors.CloudError) -> None:
        """Keep the old cloud and report the reason once."""
        # A file that can't be used is read again at each look: that costs no call.
        self._failures += isinstance(error, errors.CloudError)
        self._skipped = 0
        text = error.summary if isinstance(error, errors.CloudError) else str(error)
        if text != self._told:
            self._told = text
            self._log.error(
                "configuration reload failed, keeping the previous one", error=text
            )

    def _require_same_kinds(self, new: protocol.Cloud) -> None:
        """See that what was there still is, and nothing else: that takes a new start.

        Raises:
            ConfigError: it is not so.
        """
        old = self._opened.cloud
        for field in dataclasses.fields(protocol.Cloud):
            is_kind = field.name not in ("name", "check_reload")
            was = getattr(old, field.name) is not None
            if is_kind and was != (getattr(new, field.name) is not None):
                kind = field.name.replace("_", " ")
                switched = "off" if was else "on"
                raise config.ConfigError(
                    [f"{kind} were switched {switched}: requires a restart"]
                )
