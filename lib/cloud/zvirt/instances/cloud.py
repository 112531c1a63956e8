"""The instances of one cluster in an engine, which may hold many VMs of others."""

import dataclasses
import math
import time
import uuid
from collections.abc import Callable, Collection, Mapping

import structlog

from lib.cloud import errors, protocol, provider_id
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceRef,
    Observation,
    Seen,
    Unknown,
)
from lib.cloud.support import instance_index, parallel
from lib.cloud.zvirt import api_paths, client, home, searching
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import lists, translate
from lib.cloud.zvirt.instances.addresses import AddressRules

READ_TIMEOUT_S = 120.0
"""Of all reads of one observation."""
NAMES_KEEP_S = 600.0
"""For which names of clusters and templates are kept."""
HIDDEN_KEEP_S = 30.0
"""For which they are kept while the cluster of a VM is hidden."""
SINGLY = 2
"""Up to this number of instances are read one by one."""
_NAMELESS = Unknown(
    errors.Unsupported("the Node has no provider ID", operation="read vms")
)
Observations = Mapping[InstanceRef, Observation[Item]]


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceRules:
    """What a user may set. topology: whether Nodes get zone, region and type.

    data_center: name or ID of the one in which VMs are found by name; empty: all.
    """

    addresses: AddressRules = dataclasses.field(default_factory=AddressRules)
    topology: bool = False
    data_center: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _NamedVm:
    """A VM under the name by which Nodes find it; empty: only by ID."""

    item: Item
    name: str

    @property
    def id(self) -> str:
        return self.item.id


def of_engine(
    access: client.EngineClient,
    place: home.EngineHome,
    rules: InstanceRules | None = None,
) -> protocol.Cloud:
    """Return the cloud with its instances, and nothing else."""
    instances = EngineInstances(access, place, rules)
    return protocol.Cloud(
        provider_id.ZVIRT, instances, check_reload=place.guard.check_reload
    )


class EngineInstances:
    """Implements `lib.cloud.protocol.Instances`.

    An observation is a list of all VMs, or searches of those that Nodes name where
    that takes fewer requests. Keeps only what may be thrown away: names of clusters
    and templates, the number of VMs, and the cluster of each VM.
    """

    def __init__(
        self,
        access: client.EngineClient,
        place: home.EngineHome,
        rules: InstanceRules | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """clock: the one that `not_before` is of."""
        self._access = access
        self._home = place
        self._rules = rules or InstanceRules()
        self._clock = clock
        self._names: translate.PlaceNames | None = None
        self._names_at = -math.inf
        self._asked_names: frozenset[str] = frozenset()
        self._listed: int | None = None
        self._clusters: Mapping[str, str] = {}
        self._cluster = ""
        self._unknown_statuses: set[str] = set()
        self._log = structlog.stdlib.get_logger()

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        not_managed = {
            ref: reason
            for ref in refs
            if (reason := provider_id.not_managed(ref, provider_id.ZVIRT))
        }
        managed = [ref for ref in refs if ref not in not_managed]
        if not managed:
            return not_managed
        try:
            items = self._read(managed, not_before)
            observations = self._at_home(self._found(managed, items))
            topology = self._topology(items)
        except errors.CloudError as error:
            return {**not_managed, **dict.fromkeys(managed, Unknown(error))}
        translated = {
            ref: self._translated(observation, topology)
            for ref, observation in observations.items()
        }
        return {**not_managed, **translated}

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol; more than SINGLY are searched for together."""
        not_managed = {
            ref: reason
            for ref in refs
            if (reason := provider_id.not_managed(ref, provider_id.ZVIRT))
        }
        ids = {
            ref: provider_id.parse(ref.provider_id).id
            for ref in refs
            if ref.provider_id and ref not in not_managed
        }
        read = self._looked_at(set(ids.values()))
        observations = self._at_home({ref: read[id_] for ref, id_ in ids.items()})
        bare = {
            ref: self._bare(observation) for ref, observation in observations.items()
        }
        return {**dict.fromkeys(refs, _NAMELESS), **bare, **not_managed}

    def confirm_absent(self, ref: InstanceRef) -> bool:
        """See the protocol; False for instances of another provider."""
        if provider_id.not_managed(ref, provider_id.ZVIRT):
            return False
        if ref.provider_id:
            id_ = provider_id.parse(ref.provider_id).id
            witness = self._witness(id_)
            is_there = self._access.get(f"vms/{id_}", witness=witness) is not None
        else:
            is_there = self._has_named(ref.node_name)
            if not is_there:
                self._check_shown(ref.node_name)
        if not is_there:
            self._home.check_absence("confirm absence")
        return not is_there

    def _witness(self, id_: str) -> str:
        """Return the path of the cluster of a VM, or of another VM: it must be shown.

        An engine hides what its user has no permission for.
        """
        cluster = self._clusters.get(id_) or self._cluster
        return f"{lists.CLUSTERS}/{cluster}" if cluster else ""

    def _check_shown(self, name: str) -> None:
        """Check that VMs are not merely hidden: a cluster of them must be shown.

        Raises:
            CloudError: it is not, or that is not known.
        """
        path = self._witness("")
        if path and self._access.get(path) is None:
            raise errors.Forbidden(
                f"absence is not reliable: the engine does not show {path} either",
                operation="find vms",
                resource=name,
            )

    def _has_named(self, node_name: str) -> bool:
        """Read directly whether a VM has this name, letter case aside."""
        search = f"name={api_paths.quoted(node_name)}"
        items = searching.find(
            self._access, lists.VMS, search, timeout_s=READ_TIMEOUT_S
        )
        folded = node_name.lower()
        return any(vm.name.lower() == folded for vm in self._named(items))

    # Reads.

    def _read(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> tuple[Item, ...]:
        """Read all VMs, or those that are named, with what addresses need."""
        ids = {provider_id.parse(r.provider_id).id for r in refs if r.provider_id}
        names = {ref.node_name for ref in refs if not ref.provider_id}
        texts = lists.searches(set(filter(_is_uuid, ids)), names)
        if len(texts) < lists.pages(self._count()):
            items = self._searched(texts, lists.FOLLOW, not_before)
        else:
            items = self._access.list_all(
                lists.VMS,
                follow=lists.FOLLOW,
                not_before=not_before,
                timeout_s=READ_TIMEOUT_S,
            )
            self._listed = len(items)
            # One that is not in the list may be hidden: its cluster must not be.
            self._clusters = {k: v for k, v in self._clusters.items() if k in ids}
        self._note(items)
        return items

    def _count(self) -> int:
        """Return the number of VMs, as far as it is known."""
        total = self._home.product().vms
        return self._listed or 0 if total is None else total

    def _searched(
        self, texts: Collection[str], follow: Collection[str], not_before: float
    ) -> tuple[Item, ...]:
        deadline = self._clock() + READ_TIMEOUT_S

        def find(text: str) -> tuple[Item, ...]:
            left_s = deadline - self._clock()
            return searching.find(
                self._access, lists.VMS, text, tuple(follow), not_before, left_s
            )

        lists_of = parallel.each(find, texts, "search")
        return tuple({item.id: item for some in lists_of for item in some}.values())

    def _looked_at(self, ids: Collection[str]) -> Mapping[str, Observation[Item]]:
        """Read VMs one by one, or by searches where there are several."""
        few = set(ids) if len(ids) <= SINGLY else {i for i in ids if not _is_uuid(i)}
        many = set(ids) - few
        observations = dict(
            zip(sorted(few), parallel.each(self._one, sorted(few), "vm"), strict=True)
        )
        if not many:
            return observations
        try:
            items = self._searched(lists.searches(many, ()), (), self._clock())
        except errors.CloudError as error:
            return {**observations, **dict.fromkeys(many, Unknown(error))}
        self._note(items)
        by_id = {item.id: item for item in items}
        for id_ in many:
            item = by_id.get(id_)
            observations[id_] = Absent(by_id=True) if item is None else Seen(item)
        return observations

    def _one(self, id_: str) -> Observation[Item]:
        try:
            item = self._access.get(f"vms/{id_}", witness=self._witness(id_))
        except errors.CloudError as error:
            return Unknown(error)
        if item is None:
            return Absent(by_id=True)
        self._note((item,))
        return Seen(item)

    def _note(self, items: Collection[Item]) -> None:
        """Keep the clusters of VMs; log each status that is not known, once."""
        clusters = {i.id: id_ for i in items if (id_ := translate.cluster_id(i))}
        self._clusters = {**self._clusters, **clusters}
        self._cluster = next(iter(clusters.values()), self._cluster)
        for item in items:
            status = item.status
            if status in translate.PHASES or status in self._unknown_statuses:
                continue
            self._unknown_statuses.add(status)
            self._log.warning(
                "unknown status of a VM",
                key=item.entity.name,
                status=status,
                reason=f"must be one of {', '.join(sorted(translate.PHASES))}",
            )

    # From what was read.

    def _found(
        self, refs: Collection[InstanceRef], items: Collection[Item]
    ) -> Observations:
        index = instance_index.InstanceIndex(self._named(items), "VM")
        return {ref: _item(index.find(ref)) for ref in refs}

    def _named(self, items: Collection[Item]) -> list[_NamedVm]:
        """Return VMs with the names by which Nodes find them."""
        chosen = self._rules.data_center
        names = self._known_names(items) if chosen else translate.PlaceNames()
        named = []
        for item in items:
            place = names.places.get(translate.cluster_id(item))
            is_here = not chosen or (
                place is not None
                and chosen in (place.data_center, place.data_center_id)
            )
            named.append(_NamedVm(item, str(item.entity.name or "") if is_here else ""))
        return named

    def _topology(self, items: Collection[Item]) -> translate.PlaceNames | None:
        if not self._rules.topology:
            return None
        return self._known_names(items)

    def _known_names(self, items: Collection[Item]) -> translate.PlaceNames:
        """Return names of clusters and templates; those of new ones are read."""
        needed = _named_ids(items)
        keep_s = NAMES_KEEP_S if _shows_clusters(self._names, items) else HIDDEN_KEEP_S
        is_old = self._clock() - self._names_at >= keep_s
        if self._names is None or is_old or not needed <= self._asked_names:
            self._names = lists.names(self._access)
            self._names_at, self._asked_names = self._clock(), needed
        return self._names

    def _at_home(self, observations: Observations) -> Observations:
        """Record where IDs are observed; absence anywhere else is unknown."""
        guard = self._home.guard
        try:
            if any(
                ref.provider_id and isinstance(observation, Seen)
                for ref, observation in observations.items()
            ):
                guard.observed()
            guard.check("list vms")
        except errors.CloudError as error:
            return {
                ref: Unknown(error) if isinstance(observation, Absent) else observation
                for ref, observation in observations.items()
            }
        return observations

    def _translated(
        self, observation: Observation[Item], names: translate.PlaceNames | None
    ) -> Observation[Instance]:
        if not isinstance(observation, Seen):
            return observation
        item = observation.value
        if names is not None and translate.cluster_id(item) not in names.places:
            # A Node that is initialised now would never get the labels.
            return Unknown(_hidden_cluster(item))
        return Seen(translate.instance(item, self._rules.addresses, names))

    def _bare(self, observation: Observation[Item]) -> Observation[Instance]:
        """Return an instance of which no addresses were read."""
        shown = self._translated(observation, None)
        if not isinstance(shown, Seen):
            return shown
        bare = dataclasses.replace(shown.value, addresses=(), addresses_known=False)
        return Seen(bare)


def _item(observation: Observation[_NamedVm]) -> Observation[Item]:
    if isinstance(observation, Seen):
        return Seen(observation.value.item)
    return observation


def _shows_clusters(
    names: translate.PlaceNames | None, items: Collection[Item]
) -> bool:
    """Report whether the cluster of each VM has a name."""
    clusters = {id_ for item in items if (id_ := translate.cluster_id(item))}
    return names is not None and clusters <= names.places.keys()


def _hidden_cluster(item: Item) -> errors.CloudError:
    return errors.Forbidden(
        f"the engine does not show cluster {translate.cluster_id(item) or 'of the VM'}",
        operation="list clusters",
        resource=str(item.entity.name or item.id),
    )


def _named_ids(items: Collection[Item]) -> frozenset[str]:
    """Return the IDs of clusters and templates of VMs."""
    of = (translate.cluster_id, translate.template_id)
    return frozenset(id_ for item in items for read in of if (id_ := read(item)))


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
