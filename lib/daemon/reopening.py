"""A cloud that is opened anew when the files it was opened from change.

Rules: a call that is under way ends on the cloud it began on; a cloud that can't be
opened, or that is another project or region than the one in which objects were
observed, leaves the old one in place, is reported once, and is retried.
"""

import dataclasses
import threading
from collections.abc import Callable, Collection, Mapping

from lib.cloud import errors, load_balancers, model, protocol, routes, volumes
from lib.cloud.support import source
from lib.daemon import passing
from lib.process import config, logs

LOOK_S = 2.0
"""Between two looks at the files."""
Opened = source.Opened
MOST_SKIPPED = 14
"""Looks without a retry after repeated failures: authentication may cost a lockout."""


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
            self._log.warning("odd configuration", reason=warning)

    def cloud(self) -> protocol.Cloud:
        """Give a cloud that stays the same, whatever is behind it."""
        now = self._opened.cloud
        instances = None if now.instances is None else _Instances(self.instances)
        balancers = None
        if now.load_balancers is not None:
            balancers = passing.LoadBalancers(self.load_balancers)
        passed = None if now.routes is None else passing.Routes(self.routes)
        return protocol.Cloud(
            name=now.name,
            instances=instances,
            load_balancers=balancers,
            routes=passed,
        )

    def instances(self) -> protocol.Instances:
        """Give the instances of the cloud that is in use now."""
        now = self._opened.cloud.instances
        if now is None:
            raise TypeError("a cloud that had instances was reopened without")
        return now

    def load_balancers(self) -> load_balancers.LoadBalancers:
        """Give the load balancers of the cloud that is in use now."""
        now = self._opened.cloud.load_balancers
        if now is None:
            raise TypeError("a cloud that had load balancers was reopened without")
        return now

    def routes(self) -> routes.Routes:
        """Return the route tables of the cloud that is in use now."""
        now = self._opened.cloud.routes
        if now is None:
            raise TypeError("a cloud that had routes was reopened without")
        return now

    def volumes(self) -> volumes.Volumes:
        """Give the volumes of the cloud that is in use now."""
        now = self._opened.cloud.volumes
        if now is None:
            raise TypeError("a cloud that had volumes was reopened without")
        return now

    def after(self, fn: Callable[[], None]) -> None:
        """Call fn whenever the cloud has been replaced. Before `run` only."""
        self._after.append(fn)

    def run(self, stop: threading.Event) -> None:
        """Look at the files until told to stop."""
        while not stop.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        """Open the cloud anew if its files have changed. For one thread."""
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
        self._log.info("cloud reopened, its files have changed")
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
            self._log.error("cloud not reopened, old one kept", error=text)

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
                    [f"{kind} were switched {switched}: that takes a restart"]
                )


class _Instances:
    """Passes each call on to the instances in use when it begins."""

    def __init__(self, now: Callable[[], protocol.Instances]) -> None:
        self._now = now

    def observe(
        self, refs: Collection[model.InstanceRef], not_before: float
    ) -> Mapping[model.InstanceRef, model.Observation[model.Instance]]:
        """See the protocol."""
        return self._now().observe(refs, not_before)

    def look(
        self, refs: Collection[model.InstanceRef]
    ) -> Mapping[model.InstanceRef, model.Observation[model.Instance]]:
        """See the protocol."""
        return self._now().look(refs)

    def confirm_absent(self, ref: model.InstanceRef) -> bool:
        """See the protocol."""
        return self._now().confirm_absent(ref)
