"""Actions of the flow of machines now, from one observation of cluster and cloud.

Their own reads and decisions; nothing is written, no state is kept.
"""

import dataclasses
import time
from collections.abc import Callable, Collection

from lib.capi.provider_parts import watched
from lib.cloud.machines import Machines
from lib.daemon import read_only
from lib.kube import client, errors
from lib.machines import decide, model, observe, preview
from lib.machines.kinds import Kinds
from lib.machines.preview import MachinePlanState, MachineRow
from lib.plans.engine import Engine
from lib.process.clock import utc_now


@dataclasses.dataclass(frozen=True, slots=True)
class MachinesPreview:
    """Plans of machines."""

    rows: tuple[MachineRow, ...]

    @property
    def unread(self) -> tuple[MachineRow, ...]:
        """Return the machines with an unknown state."""
        return tuple(row for row in self.rows if row.state is MachinePlanState.UNKNOWN)


def machines(
    api: client.Api,
    cloud: Machines,
    kinds: Kinds,
    settings: model.MachineSettings,
    names: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> MachinesPreview:
    """Read machines and their instances once; return the plans.

    names: "namespace/name" or "name"; empty: all.

    Raises:
        KubeError: they cannot be read. NotFound: a named machine is not found.
    """
    reading = read_only.read_only(api)
    stores = watched(reading, kinds, settings.namespace)
    for kept in (stores.owners, stores.clusters, stores.secrets, stores.machines):
        kept.relist()
    if stores.infrastructure is not None:
        stores.infrastructure.relist()
    keys = _asked(stores.machines.items(), names)
    memory: model.MachineMemory = model.MachineMemory(clock)
    observer = observe.MachineObserver(
        observe.Sources(stores, reading, kinds, settings, lambda: cloud, utc_now),
        memory,
        Engine(lambda: cloud, memory, clock),
        clock,
    )
    topics = frozenset({model.Topic.DRIFT})
    snapshots = observer.read(observer.observe([(key, topics) for key in keys]))
    rules = decide.Rules(
        kinds, cloud.plan, cloud.conditions, settings.deletion_timeout_s
    )
    now = utc_now()
    return MachinesPreview(
        tuple(
            preview.row(snapshots[key], now, rules) for key in keys if key in snapshots
        )
    )


def _asked(listed: Collection[str], names: Collection[str]) -> list[str]:
    """Return the keys of the named machines, or of all.

    Raises:
        NotFound: a name is none of them.
    """
    for name in names:
        if not any(name in (key, key.rpartition("/")[2]) for key in listed):
            text = "there is none of that name"
            raise errors.NotFound(text, operation=f"find machine {name}")
    asked = set(names)
    return sorted(
        key
        for key in listed
        if not asked or key in asked or key.rpartition("/")[2] in asked
    )
