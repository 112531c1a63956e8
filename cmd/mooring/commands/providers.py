"""The clouds that `plan`, `doctor`, `render` and `lab` know, each by its name.

A second provider is another entry of `PROVIDERS`. Its packages are imported when a
command needs them, and only those of the cloud that was asked for.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

if TYPE_CHECKING:
    from lib.cloud import checkup, explained, load_balancers, protocol
    from lib.doctor import chart, machine_api
    from lib.lab.grounds import grounds as lab_grounds
    from lib.machines.kinds import Kinds

F = TypeVar("F", bound=Callable[..., None])


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

    def owner(self) -> "protocol.Cloud":
        """Return all of the cloud in which a cluster may own something."""
        ...

    def checkup(self, timeout_s: float) -> "checkup.Checkup":
        """Return the cloud as a doctor sees it. timeout_s: of each call."""
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
    that is set. read: opens a configuration. remedies: of `doctor`. render: the command
    of `render` of this name. client: the command of `lab` that runs the cloud's own
    client. grounds: the cloud of a lab. existing: the cloud that the value of
    `existing_flag` names. is_configured: reports whether the environment alone is a
    configuration. kinds: of machines of Cluster API. machines: what `doctor` expects of
    their provider. chart: what it expects of the umbrella chart. None: the provider
    has no such thing. has_path: `lab up` also shows
    the address of a Service and a bound claim, which take seconds. lease: the default
    Lease of the component. variables: of the configuration, by the key of a Secret.
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
    render: Callable[[], click.Command] | None = None
    client: Callable[[], click.Command] | None = None
    existing: Callable[[str], "lab_grounds.Existing"] | None = None
    is_configured: Callable[[Mapping[str, str]], bool] | None = None
    kinds: "Callable[[], Kinds] | None" = None
    machines: "Callable[[], machine_api.MachineProvider] | None" = None
    chart: "Callable[[], chart.UmbrellaChart] | None" = None
    has_path: bool = False
    lease: str = "cloud-controller-manager"
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def existing_argument(self) -> str:
        """The name under which `lab up` receives the value of `existing_flag`."""
        return self.existing_flag.strip("-").replace("-", "_")


def _balancer_ids_on_openstack() -> Sequence[str]:
    from lib.cloud.openstack.load_balancers.spec import annotations

    keys = (annotations.OWNED_ID, annotations.LOAD_BALANCER_ID)
    return (*keys, annotations.DECKHOUSE_ID)


def _read_openstack(path: str, env: Mapping[str, str], title: str = "") -> Configured:
    from mooring.commands import on_openstack

    return on_openstack.OnOpenStack.read(path, env, title)


def _remedies_on_openstack() -> "checkup.Remedies":
    from lib.cloud.openstack import checkup

    return checkup.REMEDIES


def _rights_on_openstack() -> str:
    from lib.doctor import rights

    return rights.manifest("openstack-ccm")


def _render_openstack() -> click.Command:
    from mooring.commands import render_openstack

    return render_openstack.openstack


def _openstack_client() -> click.Command:
    from mooring.commands import lab_openstack

    return lab_openstack.openstack


def _openstack_grounds() -> "lab_grounds.Grounds":
    from lib.lab.openstack import grounds

    return grounds.OpenStackGrounds()


def _existing_openstack(name: str) -> "lab_grounds.Existing":
    from lib.lab.grounds import grounds
    from lib.lab.openstack import named

    return grounds.Existing(name, named.usual_file())


def _no_balancer_ids() -> Sequence[str]:
    return ()


def _read_dvp(path: str, env: Mapping[str, str], title: str = "") -> Configured:
    from mooring.commands import on_dvp

    return on_dvp.OnDvp.read(path, env, title)


def _remedies_on_dvp() -> "checkup.Remedies":
    from lib.cloud.dvp import checkup

    return checkup.REMEDIES


def _render_dvp() -> click.Command:
    from mooring.commands import render_dvp

    return render_dvp.dvp


def _rights_on_dvp() -> str:
    from lib.cloud.dvp import needs

    return needs.manifest()


def _is_dvp_configured(env: Mapping[str, str]) -> bool:
    from lib.cloud.dvp import config

    return config.is_in_environment(env)


def _dvp_kinds() -> "Kinds":
    from mooring.commands import on_dvp

    return on_dvp.KINDS


def _dvp_machines() -> "machine_api.MachineProvider":
    from mooring.commands import on_dvp

    return on_dvp.machines()


def _dvp_chart() -> "chart.UmbrellaChart":
    from mooring.commands import chart_of_dvp

    return chart_of_dvp.expected()


def _dvp_grounds() -> "lab_grounds.Grounds":
    from lib.lab.dvp import grounds

    return grounds.DvpGrounds()


PROVIDERS = {
    "openstack": Provider(
        name="openstack",
        component="openstack-ccm",
        rights=_rights_on_openstack,
        config_help="The daemon's cloud.conf.",
        # Those of the reference's chart, and of ours.
        config_keys=("cloud.conf", "cloud-config"),
        existing_flag="--os-cloud",
        existing_help="Use this cloud of clouds.yaml.",
        load_balancer_annotations=_balancer_ids_on_openstack,
        read=_read_openstack,
        remedies=_remedies_on_openstack,
        render=_render_openstack,
        client=_openstack_client,
        grounds=_openstack_grounds,
        existing=_existing_openstack,
    ),
    "dvp": Provider(
        name="dvp",
        component="dvp-ccm",
        rights=_rights_on_dvp,
        config_help=(
            "With --cloud=dvp the parent's kubeconfig; by default"
            " $DVP_KUBERNETES_CONFIG_BASE64 is one."
        ),
        config_keys=("kubernetesConfigBase64", "kubeconfig"),
        existing_flag="",
        existing_help="",
        load_balancer_annotations=_no_balancer_ids,
        read=_read_dvp,
        remedies=_remedies_on_dvp,
        render=_render_dvp,
        grounds=_dvp_grounds,
        is_configured=_is_dvp_configured,
        kinds=_dvp_kinds,
        machines=_dvp_machines,
        chart=_dvp_chart,
        has_path=True,
        lease="dvp-cloud-controller-manager",
        variables={"namespace": "DVP_NAMESPACE", "clusterUUID": "CLUSTER_UUID"},
    ),
}
DEFAULT = next(iter(PROVIDERS))
HELP = "Cloud provider."


def of(name: str) -> Provider:
    """Return a provider by its name; the default one if that is empty."""
    return PROVIDERS[name or DEFAULT]


def option(command: F) -> F:
    """Add the option `--cloud` to a command."""
    choice = click.Choice(tuple(PROVIDERS))
    return click.option("--cloud", type=choice, default=DEFAULT, help=HELP)(command)


def existing_options(command: F) -> F:
    """Add the option for an existing cloud of each provider to `lab up`.

    `--cloud` is shown once there is a choice.
    """
    for provider in reversed([p for p in PROVIDERS.values() if p.existing_flag]):
        flag, text = provider.existing_flag, provider.existing_help
        command = click.option(flag, default="", help=text)(command)
    choice, is_only = click.Choice(tuple(PROVIDERS)), len(PROVIDERS) == 1
    usual = click.option(
        "--cloud", type=choice, default=DEFAULT, help=HELP, hidden=is_only
    )
    return usual(command)


def chosen(
    cloud: str, values: Mapping[str, str]
) -> "tuple[Provider, lab_grounds.Existing]":
    """Return whose cloud a lab has, and which one.

    cloud: value of `--cloud`. values: of the options for existing clouds, by argument.
    """
    from lib.lab.grounds import grounds

    for provider in PROVIDERS.values():
        name = values.get(provider.existing_argument, "")
        if name and provider.existing is not None:
            return provider, provider.existing(name)
    return of(cloud), grounds.OWN
