"""What a cloud reports of itself for a diagnosis: facts, not judgements.

Rules: every call is bounded by a time-out of its own; secrets are in no answer.
"""

import dataclasses
import datetime
from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from lib.cloud import errors, model


@dataclasses.dataclass(frozen=True, slots=True)
class Login:
    """Who the credentials make us.

    expires_at: of the credentials, not of a token that is renewed; None: unsaid. roles:
    in the project; empty: unsaid. is_reader: they do not allow to change anything.
    """

    user: str
    project: str
    expires_at: datetime.datetime | None = None
    roles: tuple[str, ...] = ()
    is_reader: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """One service of the cloud.

    kind: its type, as users know it. needed: nothing works without it. url: empty when
    the cloud does not offer it. version: the version it reports. warning:
    about that version; empty: none. error: why it could not be reached.
    """

    kind: str
    needed: bool
    url: str = ""
    version: str = ""
    warning: str = ""
    error: errors.CloudError | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Quota:
    """How much of one thing the project may have, and has. limit: None: no limit."""

    resource: str
    used: int
    limit: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class NamedSetting:
    """An object that the configuration names, searched for in the cloud.

    setting: section and key. kind: what it should be, in the cloud's words. value: as
    it is configured; empty: not said, then any will do. matches: ids or names of what
    fits. error: why the search failed.
    """

    setting: str
    kind: str
    value: str
    matches: tuple[str, ...] = ()
    error: errors.CloudError | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Balancing:
    """What load balancers need. version: of the API that makes them.

    error: why that can't be used; the rest is empty then. has_tags: a load balancer can
    be marked as ours without touching what others read of it.
    """

    version: str = ""
    has_tags: bool = True
    named: tuple[NamedSetting, ...] = ()
    error: errors.CloudError | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Routing:
    """The route table that the configuration names.

    setting: section and key. table: its ID. interfaces: number of subnets that it
    reaches. routes: their number. error: why it cannot be used; both are 0 then.
    """

    setting: str
    table: str
    interfaces: int = 0
    routes: int = 0
    error: errors.CloudError | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Remedies:
    """What an operator does about faults, in the words of one provider.

    credentials: they are refused. reader: their roles only read. unreachable: there is
    no answer to them. project: the credentials are of none. endpoint: a service that is
    needed is not offered. internal: no network reaches load balancers from outside.

    Of provider IDs: region: none is of the configuration's region. no_region: those
    without a region look like the other region's own. mixed: some have no region.
    """

    credentials: str
    unreachable: str
    project: str
    endpoint: str
    internal: str
    region: str
    no_region: str
    mixed: str
    reader: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ComponentRights:
    """The rights that the credentials have in the cloud, for one component.

    needed: the check is about this component. count: of all rights that it needs.
    missing: those that the credentials do not have, as clauses after "cannot".
    """

    component: str
    needed: bool
    count: int
    missing: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceProblem:
    """A problem of the instance of a Node, with what an operator does about it."""

    node: str
    text: str
    remedy: str


Offered = Mapping[str, tuple[str, ...] | errors.CloudError]
"""Names of objects of the cloud by kind; the error of a kind that is not known."""
Quotas = Mapping[str, tuple[Quota, ...] | errors.CloudError]
"""By kind of service; the error of one that did not answer."""


class Checkup(Protocol):
    """One cloud, as its configuration describes it."""

    @property
    def region(self) -> str:
        """The region that the configuration names; may be empty."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the configuration."""
        ...

    def time(self) -> datetime.datetime | None:
        """Ask what time it is there, without credentials; None: not reported.

        Raises:
            CloudError: it can't be reached.
        """
        ...

    def login(self) -> Login:
        """Authenticate again.

        Raises:
            CloudError: authentication failed.
        """
        ...

    def services(self) -> tuple[ServiceEndpoint, ...]:
        """Reach every service that some daemon uses; failures are reported as such.

        Raises:
            CloudError: there is no token.
        """
        ...

    def quotas(self) -> Quotas:
        """Ask every service that is offered for the project's quotas.

        Raises:
            CloudError: there is no token.
        """
        ...

    def balancing(self) -> Balancing | None:
        """Search for all that load balancers need; None: they are disabled.

        Raises:
            CloudError: there is no token.
        """
        ...

    def rights(self) -> tuple[ComponentRights, ...]:
        """Ask for the rights of each component; empty: they cannot be asked for.

        Raises:
            CloudError: they are not known.
        """
        ...

    def offered(self) -> Offered:
        """Return the names that objects of a cluster may contain; empty: none."""
        ...

    def routing(self) -> Routing | None:
        """Read the route table; None: the configuration names none.

        Raises:
            CloudError: there is no token.
        """
        ...


@runtime_checkable
class InstanceCheckup(Protocol):
    """A cloud that checks the instances of Nodes, too."""

    def instance_problems(
        self, refs: Collection[model.InstanceRef]
    ) -> tuple[InstanceProblem, ...]:
        """Return what keeps Nodes of these instances from being initialised.

        Raises:
            CloudError: the instances are not known.
        """
        ...
