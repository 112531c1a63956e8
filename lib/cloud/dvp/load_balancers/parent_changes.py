"""Which Services are concerned by a change in the parent: hints for the flow.

Rules: what this process has written itself is no hint, and neither is a heartbeat: an
object is only reported when it differs from the desired state, was deleted, or has
another address.
"""

import threading
from collections.abc import Callable, Iterator

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import ParentKind, ParentService, VirtualMachine
from lib.cloud.dvp.load_balancers import (
    differences_of_service,
    lb_names,
    observed_service,
)
from lib.cloud.dvp.load_balancers.desired_service import DesiredService
from lib.cloud.dvp.parent import Parent


class ParentChanges:
    """Reports changes, each with the UID of a Service. Thread-safe."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._desired: dict[str, DesiredService] = {}
        self._subscribers: list[Callable[[str], None]] = []
        self._followed: set[str] = set()

    def expect(self, name: str, desired: DesiredService | None) -> None:
        """Note what is desired for the object of a name; None: nothing."""
        with self._lock:
            if desired is None:
                self._desired.pop(name, None)
            else:
                self._desired[name] = desired

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See `lib.cloud.protocol.Changes`."""
        with self._lock:
            self._subscribers.append(fn)
        self.follow(kinds.SERVICES)
        self._parent.on_change(kinds.VIRTUAL_MACHINES, self._vm_changed)

    def follow(self, kind: ParentKind[ParentService]) -> None:
        """Report changes of that kind as well, if there is a subscriber."""
        with self._lock:
            plural = kind.resource.plural
            if not self._subscribers or plural in self._followed:
                return
            self._followed.add(plural)

        def changed(
            key: str, old: ParentService | None, new: ParentService | None
        ) -> None:
            del key
            self._report(self._of_service(kind, old, new))

        self._parent.on_change(kind, changed)

    def _vm_changed(
        self, key: str, old: VirtualMachine | None, new: VirtualMachine | None
    ) -> None:
        del key
        self._report(self._of_vm(old, new))

    def _report(self, uids: Iterator[str]) -> None:
        with self._lock:
            subscribers = tuple(self._subscribers)
        for uid in uids:
            for subscriber in subscribers:
                subscriber(uid)

    def _of_service(
        self,
        kind: ParentKind[ParentService],
        old: ParentService | None,
        new: ParentService | None,
    ) -> Iterator[str]:
        service = new or old
        if service is None:
            return
        name = observed_service.checked_owner(service) or service.metadata.name
        with self._lock:
            desired = self._desired.get(name)
        if desired is None:
            return
        is_same_address = (
            old is not None
            and new is not None
            and (old.status.load_balancer == new.status.load_balancer)
        )
        if not is_same_address or self._differs(kind, desired, new):
            yield desired.uid

    def _differs(
        self,
        kind: ParentKind[ParentService],
        desired: DesiredService,
        new: ParentService | None,
    ) -> bool:
        if new is None:
            return True
        if observed_service.is_of_checked(new):
            return False
        cluster_uuid = self._parent.cluster_uuid
        return bool(differences_of_service.of(desired, kind, new, cluster_uuid))

    def _of_vm(
        self, old: VirtualMachine | None, new: VirtualMachine | None
    ) -> Iterator[str]:
        """Yield the Services whose label on the VM is not as desired."""
        before = {} if old is None else dict(old.metadata.labels)
        after = {} if new is None else dict(new.metadata.labels)
        if new is None or before == after:
            return
        host = after.get(ownership.HOSTNAME, "")
        with self._lock:
            desired = tuple(self._desired.values())
        for service in desired:
            key = lb_names.label_key(service.name)
            has_label = after.get(key) == lb_names.LABEL_VALUE
            if has_label != (host in service.hosts):
                yield service.uid
