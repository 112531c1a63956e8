"""What a flow may ask of a cloud: narrow protocols, bundled in `Cloud`.

Rules: a method never raises for one key of many, but answers `Unknown` for it; every
call is bounded by a time-out of its own; `not_before` is a time of the process's
monotonic clock: an answer's read began then or later (its first page counts), or it is
of a watch that was known to be up to date then.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Protocol, TypeVar

from lib.cloud import model
from lib.cloud.catalog import Catalog
from lib.cloud.layouts import Layouts
from lib.cloud.load_balancers import LoadBalancers
from lib.cloud.machines import MachineClusters, Machines
from lib.cloud.routes import Routes
from lib.cloud.volumes import Volumes

C_co = TypeVar("C_co", covariant=True)


class Instances(Protocol):
    """Read-only access to the VMs behind Nodes."""

    def observe(
        self, refs: Collection[model.InstanceRef], not_before: float
    ) -> Mapping[model.InstanceRef, model.Observation[model.Instance]]:
        """Return what is known of each ref; one entry each.

        The number of cloud calls does not grow with the number of refs, but in a
        cloud that holds far more than these. Absence is only a hint here: see
        `confirm_absent`.
        """
        ...

    def look(
        self, refs: Collection[model.InstanceRef]
    ) -> Mapping[model.InstanceRef, model.Observation[model.Instance]]:
        """Read these one by one, now, several in parallel; one entry each.

        For a few refs of many, which must hold provider ids: one call each, and none
        for all the others. Addresses are not read (addresses_known is False), and the
        type may be missing. Absence is only a hint here, too.
        """
        ...

    def confirm_absent(self, ref: model.InstanceRef) -> bool:
        """Look directly, past every list and cache, whether the instance is gone.

        True only for a clear "not found" in the project the refs live in.

        Raises:
            CloudError: it is not known.
        """
        ...


class ChangeReports(Protocol[C_co]):
    """What a cloud reports by itself: which of its objects have changed.

    A report is a hint, never an observation: the object is read after it. Reports may
    be missing, or repeated; periodic checks stay.
    """

    def subscribe(self, fn: Callable[[C_co], None]) -> None:
        """Have `fn` called after each change, with whom it concerns.

        Objects that exist already may be reported, too. `fn` is called in threads of
        the cloud, and must return immediately.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud, as a bundle of what it can do; None where it can't.

    name: the provider's name as users write it in --cloud-provider. machine_clusters:
    checks infrastructure clusters before machines are created in them; None: every one
    is usable. instance_changes: reports changes of instances, each with the reference
    of the Node that may be concerned. load_balancer_changes: reports changes of load
    balancers, each with the UID of its Service. machine_changes: reports changes of
    machines, each with the UID of the object of Cluster API that it was created for.
    check_reload: raises CloudError unless this cloud, opened from changed files, is the
    project and region in which the objects of this cluster were observed.
    """

    name: str
    instances: Instances | None = None
    load_balancers: LoadBalancers | None = None
    routes: Routes | None = None
    volumes: Volumes | None = None
    catalog: Catalog | None = None
    machines: Machines | None = None
    machine_clusters: MachineClusters | None = None
    layouts: Layouts | None = None
    instance_changes: ChangeReports[model.InstanceRef] | None = None
    load_balancer_changes: ChangeReports[str] | None = None
    machine_changes: ChangeReports[str] | None = None
    check_reload: Callable[[], None] | None = None
