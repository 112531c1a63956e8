"""OpenStack as the cloud of a lab: implements `lib.lab.grounds.grounds.Grounds`."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

from lib.lab import places
from lib.lab.daemons import ccm, csi, csi_node
from lib.lab.grounds import grounds, servers
from lib.lab.kube import pki
from lib.lab.openstack import (
    accounts,
    cloud,
    database,
    lab,
    layout,
    named,
    pod_values,
    tenant,
)
from lib.lab.run import progress

_CLOUD_VARIABLE = "OS_CLOUD"
_CLUSTER_UUID = "6d6f6f72-696e-4720-8c61-620000000001"
WITHOUT_DATABASE = "without database"


class CinderVolumes:
    """Volumes of the lab's own Cinder, for `grounds.NodeVolumes`."""

    zone = "nova"

    def attachments(self, where: places.Places, server_id: str) -> pathlib.Path:
        """See the protocol."""
        return layout.attachments(where, server_id)

    def configuration(self, where: places.Places) -> pathlib.Path:
        """See the protocol: zones of servers are not those of volumes."""
        target = where.state / "csi-cloud.conf"
        zones = "\n[BlockStorage]\nignore-volume-az = true\n"
        pki.write_secret(target, f"{accounts.cloud_conf(where)}{zones}".encode())
        return target


class CinderClaims:
    """Claims on the lab's own Cinder, for `grounds.Claims`."""

    driver = csi_node.DRIVER
    default_class = csi.default_class(CinderVolumes.zone)

    def arguments(self, where: places.Places) -> tuple[str, ...]:
        """See the protocol."""
        return csi.on_openstack(CinderVolumes().configuration(where), csi.CLUSTER)

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """Return nothing: the file has it all."""
        del where
        return {}


class OpenStackDiscovery:
    """The lab's own OpenStack, for `grounds.Discovery`."""

    arguments = ("--cloud=openstack",)
    offers = "flavors"

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """See the protocol.

        Source: cloud-data-discoverer of Deckhouse's module cloud-provider-openstack.
        """
        return {
            "OS_AUTH_URL": layout.of(where).url(layout.KEYSTONE, "/v3"),
            "OS_DOMAIN_NAME": "Default",
            "OS_TENANT_NAME": accounts.DEMO.project,
            "OS_USERNAME": accounts.DEMO.user,
            "OS_PASSWORD": layout.PASSWORD,
            "OS_REGION": layout.REGION,
            "CLUSTER_UUID": _CLUSTER_UUID,
        }

    def installed(self) -> Mapping[str, object]:
        """See the protocol.

        Source: Deckhouse, OpenStackCloudDiscoveryData.
        """
        return {
            "layout": "Standard",
            "zones": list(layout.ZONES),
            # The image is that of seed_cloud.py.
            "instances": {"imageName": "tiny", "mainNetwork": tenant.NETWORK},
        }


class OpenStackGrounds:
    """The lab's own OpenStack, or a cloud of a clouds.yaml."""

    name = "openstack"
    title = "OpenStack"
    manager = ccm.NAME
    programs = (layout.DATABASE, *layout.SERVICES)
    has_routes = True
    volumes = CinderVolumes()
    claims = CinderClaims()
    discovery = OpenStackDiscovery()
    # Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go.
    load_balancer_annotation = "loadbalancer.openstack.org/load-balancer-id"
    has_load_balancers = True
    charts = pod_values.OpenStackCharts()
    variables = (_CLOUD_VARIABLE, named.FILE_VARIABLE)

    @property
    def manifest(self) -> str:
        """The RBAC manifest of the chart."""
        return ccm.manifest()

    @property
    def faults(self) -> Mapping[str, grounds.Fault]:
        """See the protocol."""
        return {WITHOUT_DATABASE: without_database}

    def ports(self, where: places.Places) -> Mapping[str, int]:
        """See the protocol."""
        return layout.ports(where)

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        lab.build(where, shown)

    def is_built(self, where: places.Places) -> bool:
        """See the protocol."""
        return layout.of(where).install.is_complete

    def up(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        lab.up(where, shown)

    def down(self, where: places.Places) -> None:
        """See the protocol."""
        lab.down(where)

    def status(self, where: places.Places) -> tuple[grounds.CloudProgram, ...]:
        """See the protocol."""
        return tuple(
            grounds.CloudProgram(
                service.name,
                service.port,
                runs=service.pid is not None,
                answers=service.is_answering,
            )
            for service in lab.status(where)
        )

    def prepare(self, where: places.Places) -> None:
        """Create the network of the servers."""
        tenant.Tenant(cloud.connect(where)).ensure_network()

    def open(self, where: places.Places, existing: grounds.Existing) -> servers.Cloud:
        """See the protocol."""
        return named.connect(*_described(where, existing))

    def environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """See the protocol.

        Source: openstacksdk, "Configuring OpenStack SDK Applications".
        """
        file, name = _described(where, existing)
        variables = {_CLOUD_VARIABLE: name}
        return (
            variables if file is None else {**variables, named.FILE_VARIABLE: str(file)}
        )

    def described(
        self, where: places.Places, existing: grounds.Existing
    ) -> grounds.Existing:
        """See the protocol."""
        file, name = _described(where, existing)
        return grounds.Existing(name, "" if file is None else str(file))

    def manager_arguments(
        self,
        where: places.Places,
        existing: grounds.Existing,
        kubeconfig: pathlib.Path,
        pod_cidr: str = "",
    ) -> tuple[str, ...]:
        """See the protocol."""
        conf = _cloud_conf(where, existing, has_routes=bool(pod_cidr))
        routed = (f"--cluster-cidr={pod_cidr}",) if pod_cidr else ()
        return ccm.arguments(where, kubeconfig, conf, (*ccm.LAB, *routed))

    def manager_environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """Return nothing: the configuration has it all."""
        del where, existing
        return {}


@contextlib.contextmanager
def without_database(where: places.Places) -> Iterator[None]:
    """Stop the database of all services."""
    home = layout.of(where)
    database.stop(home)
    try:
        yield
    finally:
        database.start(home)


def _described(
    where: places.Places, existing: grounds.Existing
) -> tuple[pathlib.Path | None, str]:
    """Return which cloud of which clouds.yaml is the lab's; None: the usual file."""
    if not existing.name:
        return accounts.clouds_file(where), accounts.DEMO.cloud
    return pathlib.Path(existing.file) if existing.file else None, existing.name


def _cloud_conf(
    where: places.Places, existing: grounds.Existing, *, has_routes: bool
) -> pathlib.Path:
    """Write the configuration that openstack-ccm reads.

    has_routes: whether it names the router of `prepare`, in the lab's own cloud.

    Source: cloud-provider-openstack, [Global] use-clouds, clouds-file, cloud; [Route].
    """
    target = where.state / "cloud.conf"
    text = accounts.cloud_conf(where)
    if has_routes:
        router_id = tenant.Tenant(cloud.connect(where)).router_id()
        text += f"\n[Route]\nrouter-id = {router_id}\n"
    if existing.name:
        file, name = _described(where, existing)
        lines = ["[Global]", "use-clouds = true", f'cloud = "{name}"']
        lines += [] if file is None else [f'clouds-file = "{file}"']
        text = "\n".join([*lines, ""])
    pki.write_secret(target, text.encode())
    return target
