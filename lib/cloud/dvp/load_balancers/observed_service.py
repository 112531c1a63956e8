"""What the parent holds for a Service, and who owns it. Pure."""

import dataclasses
import datetime
from collections.abc import Mapping

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import ParentKind, ParentService
from lib.cloud.load_balancers import Ingress, IpMode, Observed

TYPE = "LoadBalancer"


@dataclasses.dataclass(frozen=True, slots=True)
class LabelledVm:
    """A VM of the cluster, as far as load balancers need it."""

    name: str
    uid: str
    host: str


@dataclasses.dataclass(frozen=True, slots=True)
class ParentObjects:
    """All that the parent holds for one Service.

    service: of its name. checked: the ServiceWithHealthchecks of its name; status_of:
    the Service that this has created. serves_checked: whether new load balancers are to
    be one. vms: all of the cluster, by host. labelled: those with the label. kept: the
    names of those whose label the parent has refused to remove. unkept: objects with
    fields that the parent has changed back while it accepted our patches.
    """

    cluster_uuid: str
    service: ParentService | None = None
    checked: ParentService | None = None
    status_of: ParentService | None = None
    serves_checked: bool = False
    vms: Mapping[str, tuple[LabelledVm, ...]] = dataclasses.field(default_factory=dict)
    labelled: tuple[LabelledVm, ...] = ()
    kept: frozenset[str] = frozenset()
    unkept: str = ""

    @property
    def removable(self) -> tuple[LabelledVm, ...]:
        """VMs of a deleted Service whose label has not been refused to be removed.

        A label that stays is harmless: no other Service selects it.
        """
        return tuple(vm for vm in self.labelled if vm.name not in self.kept)

    @property
    def main(self) -> tuple[ParentKind[ParentService], ParentService] | None:
        """The load balancer: an existing plain Service stays plain."""
        if self.service is not None and not is_of_checked(self.service):
            return kinds.SERVICES, self.service
        if self.checked is not None:
            return kinds.HEALTHCHECKED_SERVICES, self.checked
        return None

    @property
    def all(self) -> tuple[tuple[ParentKind[ParentService], ParentService], ...]:
        """Both kinds, without the Service that the parent's controller deletes."""
        objects: list[tuple[ParentKind[ParentService], ParentService]] = []
        if self.checked is not None:
            objects.append((kinds.HEALTHCHECKED_SERVICES, self.checked))
        if self.service is not None and not is_of_checked(self.service):
            objects.append((kinds.SERVICES, self.service))
        return tuple(objects)

    @property
    def ingress(self) -> tuple[Ingress, ...]:
        """The addresses, as the parent shows them."""
        main = self.main
        if main is None:
            return ()
        kind, service = main
        shown = service if kind is kinds.SERVICES else self.status_of
        if shown is None:
            return ()
        return tuple(
            Ingress(row.ip, row.hostname, IpMode(row.ip_mode) if row.ip_mode else None)
            for row in shown.status.load_balancer.ingress or ()
        )


def of(observed: Observed) -> ParentObjects:
    """Return the native part of an observation."""
    if not isinstance(observed.native, ParentObjects):
        raise TypeError("the observation is of another provider package")
    return observed.native


def checked_owner(service: ParentService) -> str:
    """Return the name of the ServiceWithHealthchecks that owns a Service; or none."""
    kind = kinds.HEALTHCHECKED_SERVICES.resource.kind
    owners = service.metadata.owner_references
    return next((owner.name for owner in owners if owner.kind == kind), "")


def is_of_checked(service: ParentService) -> bool:
    """Report whether a ServiceWithHealthchecks has created this Service."""
    return bool(checked_owner(service))


def other_owner(service: ParentService, cluster_uuid: str, uid: str) -> str:
    """Return who else owns an object, as a clause; empty: it is, or may become, ours.

    An object of the reference has no ownership label: its name contains the UID of the
    Service, so that it is adopted if it is a load balancer.
    """
    labels = service.metadata.labels
    cluster, owner = labels.get(ownership.CLUSTER), labels.get(ownership.OWNER_UID)
    if cluster not in (None, cluster_uuid):
        return f'label {ownership.CLUSTER} is "{cluster}"'
    if owner not in (None, uid):
        return f'label {ownership.OWNER_UID} is "{owner}"'
    owners = service.metadata.owner_references
    if owners:
        return f"it is owned by {owners[0].kind} {owners[0].name}"
    if cluster is None and owner is None and service.spec.type != TYPE:
        return f'it has no ownership label, and its type is "{service.spec.type}"'
    return ""


def age_s(service: ParentService, now: datetime.datetime) -> float:
    """Return for how many seconds an object exists; 0 if that is not known."""
    created = service.metadata.creation_timestamp
    return 0.0 if created is None else max(0.0, (now - created).total_seconds())
