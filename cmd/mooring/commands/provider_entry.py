"""Type of a cloud as the commands know it: an entry of `providers`.

Its packages are imported when a command needs them, and only those of the cloud that
was asked for: the functions of a `Provider` import them.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from lib.cloud import checkup, explained, load_balancers, protocol
    from lib.doctor import chart, machine_api
    from lib.lab.grounds import grounds as lab_grounds
    from lib.machines.kinds import Kinds


class Configured(Protocol):
    """What one configuration describes; nothing has been asked of the cloud yet.

    Methods raise ConfigError when the configuration cannot be used.
    """

    @property
    def cluster_id(self) -> str:
        """The ID in the ownership tags of the cluster; empty: not configured."""
        ...

    def instances(self) -> "protocol.Instances":
        """Return the instances of the cloud."""
        ...

    def plans(self) -> "tuple[load_balancers.LoadBalancers, explained.Explain]":
        """Return the load balancers, and what puts plans for them into words."""
        ...

    def owner(self, volume_cluster: str = "") -> "protocol.Cloud":
        """Return all of the cloud in which a cluster may own something.

        volume_cluster: ID in the ownership metadata of volumes; empty: unknown.
        """
        ...

    def checkup(self, timeout_s: float) -> "checkup.Checkup":
        """Return the cloud as a doctor sees it. timeout_s: of each call."""
        ...


@runtime_checkable
class Forwarding(Protocol):
    """A cloud whose manager copies annotations and external IPs of a Service."""

    def forwarding(self, prefixes: tuple[str, ...], external_ips: bool) -> Configured:
        """Return it as with the manager's flags of these values."""
        ...


class ReadConfigured(Protocol):
    """Opens a configuration."""

    def __call__(
        self, path: str, env: Mapping[str, str], title: str = ""
    ) -> Configured:
        """Read a file. title: name in messages; empty: the path.

        Raises:
            ConfigError: it cannot be used.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """What one cloud brings to the commands.

    name: value of `--cloud`. component: the cloud controller manager. rights: returns
    the manifest of the rights that `doctor` judges. config_help: of
    `--cloud-config`. config_keys: usual keys of the configuration in a Secret; the
    first that exists. existing_flag, existing_help: of `lab up`, to use a cloud that is
    there already; empty: that is not possible.

    load_balancer_annotations: those with the ID of a Service's load balancer; the first
    that is set. read: opens a configuration. remedies: of `doctor`. grounds: the cloud
    of a lab. existing: the cloud that the value of `existing_flag` names.
    is_configured: reports whether the environment alone is a configuration. kinds: of
    machines of Cluster API. machines: what `doctor` expects of their provider. chart:
    what it expects of the umbrella chart. None: the provider has no such thing.
    client_words: an example of arguments of the command of `lab` with this name; empty:
    there is none. has_path: `lab up` also shows the address of a Service and a bound
    claim, which take seconds.
    lease: the default Lease of the component. driver: returns the name of the
    CSIDriver. variables: of the configuration, by the
    key of a Secret.
    """

    name: str
    component: str
    rights: Callable[[], str]
    config_help: str
    config_keys: tuple[str, ...]
    existing_flag: str
    existing_help: str
    load_balancer_annotations: Callable[[], Sequence[str]]
    read: ReadConfigured
    remedies: Callable[[], "checkup.Remedies"]
    grounds: Callable[[], "lab_grounds.Grounds"]
    existing: Callable[[str], "lab_grounds.Existing"] | None = None
    is_configured: Callable[[Mapping[str, str]], bool] | None = None
    kinds: "Callable[[], Kinds] | None" = None
    machines: "Callable[[], machine_api.MachineProvider] | None" = None
    chart: "Callable[[], chart.UmbrellaChart] | None" = None
    client_words: str = ""
    has_path: bool = False
    lease: str = "cloud-controller-manager"
    driver: Callable[[], str] | None = None
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def existing_argument(self) -> str:
        """The name under which `lab up` receives the value of `existing_flag`."""
        return self.existing_flag.strip("-").replace("-", "_")
