"""Charts of networking and compute: what openstack-helm 2026.1.0 has under these names.

Their pods wait for one another in a cycle: agents for Nova's API, nova-compute for
Neutron and libvirt, libvirt for the agent of its node.

Source: values.yaml and templates of openstack-helm 2026.1.0.
"""

from lib.lab.osdpl import chart_parts, contract
from lib.lab.osdpl.contract import Chart, Job, Needs, Workload, WorkloadKind

_OVS_AGENT = (("neutron", "neutron-ovs-agent"),)


def _agent(
    name: str, label: str, services: tuple[str, ...], *, flag: str = ""
) -> Workload:
    """Return one agent of Neutron that needs the Open vSwitch agent of its node."""
    return Workload(
        kind=WorkloadKind.DAEMON_SET,
        name=f"neutron-{name}-agent-default",
        component=f"{name}-agent",
        label=label,
        images=(f"neutron_{name}",),
        flag=flag or f"daemonset_{name}_agent",
        needs=Needs(
            services=("oslo_messaging", "network", *services),
            jobs=("neutron-rabbit-init",),
            pods=_OVS_AGENT,
        ),
        host=chart_parts.HOST,
        is_privileged=True,
    )


def _absent_agent(name: str, label: str, images: tuple[str, ...]) -> Workload:
    """Return an agent that is on by default and not used with Open vSwitch."""
    return Workload(
        kind=WorkloadKind.DAEMON_SET,
        name=f"neutron-{name}-agent-default",
        component=f"neutron-{name}-agent",
        label=label,
        images=images,
        flag=f"daemonset_{name}_agent",
        host=chart_parts.HOST,
    )


def _neutron_workloads() -> tuple[Workload, ...]:
    servers = ("oslo_db", "oslo_messaging", "oslo_cache", "identity")
    jobs = ("neutron-db-sync", "neutron-rabbit-init")
    accounts = ("neutron-ks-user", "neutron-ks-endpoints")
    return (
        Workload(
            kind=WorkloadKind.DEPLOYMENT,
            name="neutron-server",
            component="server",
            label="server",
            replicas="server",
            images=("neutron_server",),
            needs=Needs(services=servers, jobs=(*jobs, *accounts)),
            service="neutron-server",
            port=9696,
            budget="server",
        ),
        Workload(
            kind=WorkloadKind.DEPLOYMENT,
            name="neutron-rpc-server",
            component="rpc_server",
            label="rpc_server",
            replicas="rpc_server",
            images=("neutron_rpc_server",),
            needs=Needs(services=servers, jobs=jobs),
        ),
        Workload(
            kind=WorkloadKind.DAEMON_SET,
            name="neutron-ovs-agent-default",
            component="neutron-ovs-agent",
            label="ovs",
            images=("neutron_openvswitch_agent",),
            flag="daemonset_ovs_agent",
            needs=Needs(
                services=("oslo_messaging", "network"),
                jobs=("neutron-rabbit-init",),
                pods=(("openvswitch", "server"),),
            ),
            host=chart_parts.HOST,
            is_privileged=True,
        ),
        _agent("dhcp", "agent.dhcp", ("compute",)),
        _agent("l3", "agent.l3", ("compute",)),
        _agent("metadata", "agent.metadata", ("compute", "compute_metadata")),
        Workload(
            kind=WorkloadKind.DAEMON_SET,
            name="neutron-netns-cleanup-cron-default",
            component="netns-cleanup-cron",
            label="netns_cleanup_cron",
            images=("neutron_netns_cleanup_cron",),
            flag="daemonset_netns_cleanup_cron",
            host=chart_parts.HOST,
            is_privileged=True,
        ),
        _absent_agent("lb", "lb", ("neutron_linuxbridge_agent",)),
        _absent_agent("sriov", "sriov", ("neutron_sriov_agent",)),
    )


def _neutron() -> Chart:
    accounts = ("neutron", "nova", "placement", "designate", "ironic")
    required, public = chart_parts.service_values("neutron", accounts)
    agents = ("dhcp", "l3", "metadata", "l2gw", "ovn_vpn")
    servers = ("job", "server", "rpc_server", "ironic_agent", "netns_cleanup_cron")
    key = "conf.metadata_agent.DEFAULT.metadata_proxy_shared_secret"
    return Chart(
        name="neutron",
        app_version="v28.0.0",
        images=(
            "bootstrap",
            "test",
            *chart_parts.DATABASE_IMAGES,
            "neutron_db_sync",
            "rabbit_init",
            *chart_parts.ACCOUNT_IMAGES,
            "netoffload",
            "neutron_server",
            "neutron_rpc_server",
            "neutron_dhcp",
            "neutron_metadata",
            "neutron_ovn_metadata",
            "neutron_ovn_db_sync",
            "neutron_ovn_vpn",
            "neutron_l3",
            "neutron_l2gw",
            "neutron_openvswitch_agent",
            "neutron_linuxbridge_agent",
            "neutron_sriov_agent",
            "neutron_sriov_agent_init",
            "neutron_bagpipe_bgp",
            "neutron_bgp_dragent",
            "neutron_ironic_agent_init",
            "neutron_ironic_agent",
            "neutron_netns_cleanup_cron",
            "dep_check",
            "image_repo_sync",
        ),
        labels={
            **{f"agent.{name}": contract.CONTROL_PLANE for name in agents},
            **dict.fromkeys((*servers, "test"), contract.CONTROL_PLANE),
            **dict.fromkeys(("bagpipe_bgp", "bgp_dragent"), contract.COMPUTE),
            "lb": "linuxbridge",
            "ovs": contract.OPENVSWITCH,
            "sriov": "sriov",
        },
        replicas=("ironic_agent",),
        flags={"pod_rally_test": True},
        endpoints=(
            *("compute", "compute_metadata", "identity", "network"),
            *("oslo_cache", "oslo_db", "oslo_messaging"),
        ),
        required=(
            *required,
            *chart_parts.public_name("network"),
            "network.interface.tunnel",
        ),
        public=public | {key: "password"},
        workloads=_neutron_workloads(),
        jobs=(
            *chart_parts.database_jobs("neutron", "neutron_db_sync"),
            *chart_parts.account_jobs("neutron"),
            chart_parts.bus_job("neutron"),
        ),
    )


def _openvswitch() -> Chart:
    return Chart(
        name="openvswitch",
        app_version="v1.0.0",
        images=(
            *("openvswitch_db_server", "openvswitch_vswitchd"),
            *("dep_check", "image_repo_sync"),
        ),
        labels={"ovs": contract.OPENVSWITCH},
        workloads=(
            Workload(
                kind=WorkloadKind.DAEMON_SET,
                name="openvswitch",
                component="server",
                label="ovs",
                images=("openvswitch_db_server", "openvswitch_vswitchd"),
                host=("hostNetwork",),
                is_privileged=True,
            ),
        ),
    )


def _nova_server(  # noqa: PLR0913 # the parts in which they differ
    name: str,
    component: str,
    label: str,
    image: str,
    needs: Needs,
    service: str = "",
    port: int = 80,
    *,
    flag: str = "",
    budget: str = "",
) -> Workload:
    """Return one Deployment of Nova."""
    return Workload(
        kind=WorkloadKind.DEPLOYMENT,
        name=name,
        component=component,
        label=label,
        replicas=label,
        images=(image,),
        needs=needs,
        service=service,
        port=port,
        flag=flag,
        budget=budget,
        host=("hostNetwork",) if label.endswith("proxy") else (),
    )


def _nova_workloads() -> tuple[Workload, ...]:
    backends = ("oslo_messaging", "oslo_db", "identity")
    synced = ("nova-db-sync", "nova-rabbit-init")
    api = Needs(services=backends, jobs=(*synced, "nova-ks-user", "nova-ks-endpoints"))
    after_api = Needs(services=(*backends, "compute"), jobs=synced)
    proxy = Needs(services=("oslo_db",), jobs=("nova-db-sync",))
    proxies = [
        _nova_server(
            f"nova-{name}proxy",
            f"{name}-proxy",
            f"{name}proxy",
            f"nova_{name}proxy",
            proxy,
            f"nova-{name}proxy",
            port,
            flag=f"deployment_{name}proxy",
        )
        for name, port in (("novnc", 6080), ("spice", 6082), ("serial", 6083))
    ]
    return (
        _nova_server(
            *("nova-api-osapi", "os-api", "osapi", "nova_api", api, "nova-api", 8774),
            budget="osapi",
        ),
        _nova_server(
            *("nova-api-metadata", "metadata", "api_metadata", "nova_api", api),
            "nova-metadata",
            8775,
            budget="metadata",
        ),
        _nova_server(
            "nova-conductor", "conductor", "conductor", "nova_conductor", after_api
        ),
        _nova_server(
            "nova-scheduler", "scheduler", "scheduler", "nova_scheduler", after_api
        ),
        *proxies,
        Workload(
            kind=WorkloadKind.DAEMON_SET,
            name="nova-compute-default",
            component="compute",
            label="agent.compute",
            images=("nova_compute",),
            flag="daemonset_compute",
            needs=Needs(
                services=(
                    *("oslo_messaging", "image", "compute"),
                    *("network", "compute_metadata"),
                ),
                jobs=synced,
                pods=(("libvirt", "libvirt"), *_OVS_AGENT),
            ),
            host=chart_parts.HOST_ALL,
            is_privileged=True,
        ),
    )


def _nova_jobs() -> tuple[Job, ...]:
    synced = ("nova-db-sync", "nova-rabbit-init")
    backends = ("oslo_messaging", "oslo_db", "identity", "compute")
    return (
        *chart_parts.database_jobs("nova", "nova_db_sync"),
        *chart_parts.account_jobs("nova"),
        chart_parts.bus_job("nova"),
        Job(
            name="nova-cell-setup",
            image="nova_cell_setup",
            weight=None,
            needs=Needs(
                services=backends,
                jobs=synced,
                pods=(("nova", "compute"),),
                same_node=False,
            ),
            flag="job_cell_setup",
            is_cluster_wide=True,
        ),
        Job(
            name="nova-bootstrap",
            image="bootstrap",
            weight=None,
            needs=Needs(services=("identity", "compute"), jobs=("nova-cell-setup",)),
            flag="job_bootstrap",
            is_cluster_wide=True,
        ),
        Job(
            name="nova-service-cleaner",
            image="nova_service_cleaner",
            weight=None,
            needs=Needs(services=backends, jobs=synced),
            flag="cron_job_service_cleaner",
            schedule="0 */1 * * *",
        ),
    )


def _nova() -> Chart:
    accounts = ("nova", "service", "neutron", "ironic", "placement", "cinder")
    databases = ("oslo_db", "oslo_db_api", "oslo_db_cell0")
    required, public = chart_parts.service_values("nova", accounts, databases)
    key = "conf.nova.neutron.metadata_proxy_shared_secret"
    servers = (
        *("api_metadata", "conductor", "job", "novncproxy", "osapi"),
        *("scheduler", "serialproxy", "spiceproxy", "test"),
    )
    return Chart(
        name="nova",
        app_version="v33.0.0",
        images=(
            "bootstrap",
            *chart_parts.DATABASE_IMAGES,
            "dep_check",
            "rabbit_init",
            *chart_parts.ACCOUNT_IMAGES,
            "nova_archive_deleted_rows",
            "nova_api",
            "nova_cell_setup",
            "nova_cell_setup_init",
            "nova_compute",
            "nova_compute_ironic",
            "nova_compute_ssh",
            "nova_conductor",
            "nova_db_sync",
            "nova_novncproxy",
            "nova_novncproxy_assets",
            "nova_scheduler",
            "nova_storage_init",
            "nova_service_cleaner",
            "nova_serialproxy",
            "nova_spiceproxy",
            "nova_spiceproxy_assets",
            "test",
            "image_repo_sync",
            "nova_wait_for_computes_init",
        ),
        labels={
            "agent.compute": contract.COMPUTE,
            "agent.compute_ironic": contract.COMPUTE,
            **dict.fromkeys(servers, contract.CONTROL_PLANE),
        },
        replicas=("compute_ironic",),
        flags={"pod_rally_test": True},
        endpoints=(
            *("compute", "compute_metadata", "identity", "image", "network"),
            *("oslo_cache", "oslo_db", "oslo_messaging"),
        ),
        required=(
            *required,
            *chart_parts.public_name("compute"),
            *chart_parts.public_name("compute_novnc_proxy", "novnc_proxy"),
            *chart_parts.named("network.ssh", "private_key", "public_key"),
            "conf.ceph.enabled",
            "conf.libvirt.live_migration_interface",
            "conf.nova.libvirt.images_type",
        ),
        public=public | {key: "password"},
        workloads=_nova_workloads(),
        jobs=_nova_jobs(),
    )


def _libvirt() -> Chart:
    return Chart(
        name="libvirt",
        app_version="v1.0.0",
        images=(
            *("libvirt", "ceph_config_helper", "dep_check"),
            *("image_repo_sync", "kubectl"),
        ),
        labels={"agent.libvirt": contract.COMPUTE},
        required=("conf.ceph.enabled",),
        workloads=(
            Workload(
                kind=WorkloadKind.DAEMON_SET,
                name="libvirt-libvirt-default",
                component="libvirt",
                label="agent.libvirt",
                images=("libvirt",),
                needs=Needs(pods=_OVS_AGENT),
                host=chart_parts.HOST_ALL,
                is_privileged=True,
            ),
        ),
    )


CHARTS = (_neutron(), _openvswitch(), _nova(), _libvirt())
