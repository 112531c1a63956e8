"""The rendered releases: every key of the charts' contracts is set."""

import importlib.resources
import re
from typing import Any

import pytest

from lib.osdpl.api import hashing, merge, model, schema, spec, versions
from lib.osdpl.values import contract, graph, layers
from lib.osdpl.values.services import common
from lib.process import config
from tests.lib.osdpl import samples

CHARTS = [
    (name, chart) for releases in graph.RELEASES.values() for name, chart in releases
]
TAGS = ("2025.1.0", "2025.2.0", "2026.1.0", "2026.1.9+0ee5ade")


def with_version(version: str) -> model.Rendered:
    """Return the render with charts of a version."""
    pin = {"releases": {"version": version}}
    return samples.rendered(common={"openstack": pin, "infra": pin})


def test_core_has_twelve_releases() -> None:
    rendered = samples.rendered()

    assert rendered.refusals == ()
    names = [release.name for bundle in rendered.bundles for release in bundle.releases]
    assert sorted(names) == sorted(name for name, _ in CHARTS)
    assert len(names) == 12


@pytest.mark.parametrize("tag", TAGS)
def test_every_key_of_the_contracts_is_set(tag: str) -> None:
    """Print chart, kind of key, keys and missing ones; fail on any missing one."""
    rendered = with_version(tag)
    generations = contract.generations("version", tag)
    failures = []
    print(f"{'chart':12} {'kind':10} keys missing")
    for name, chart in CHARTS:
        facts = contract.load(chart, generations)
        values = samples.release(rendered, name).values
        expected = {
            "images": [
                f"images.tags.{key}"
                for key, reference in facts.images.items()
                if common.RELEASE in reference
            ],
            "replicas": [f"pod.replicas.{key}" for key in facts.replicas],
            "labels": [
                f"labels.{key}.{field}"
                for key in facts.labels
                for field in ("node_selector_key", "node_selector_value")
            ],
            "accounts": [
                f"endpoints.identity.auth.{account}.{field}"
                for account in (*facts.accounts, *(["admin"] if facts.accounts else []))
                for field in ("username", "password", "region_name", "project_name")
            ],
            "databases": [
                f"endpoints.{database}.auth.{user}.{field}"
                for database, users in facts.databases.items()
                for user in ("admin", *users)
                for field in ("username", "password")
            ],
            "namespaces": [f"endpoints.{name}.namespace" for name in facts.databases],
        }
        for kind, paths in expected.items():
            missing = [path for path in paths if samples.at(values, path) is None]
            print(f"{chart:12} {kind:10} {len(paths):4} {' '.join(missing)}")
            failures += [f"{chart}: {path}" for path in missing]
    assert failures == []


@pytest.mark.parametrize("version", versions.RELEASES)
def test_images_are_of_the_openstack_version(version: str) -> None:
    rendered = samples.rendered(openstack_version=version)
    release = versions.RELEASES[version]
    for name, chart in CHARTS:
        for key, image in (
            samples.release(rendered, name).values["images"]["tags"].items()
        ):
            assert "{" not in image, (chart, key)
            match = re.search(r":(20\d\d\.\d)-", image)
            assert match is None or match[1] == release, (chart, key, image)
    nova = samples.release(rendered, "openstack-nova").values
    tag = nova["images"]["tags"]["nova_api"]
    assert tag == f"quay.io/airshipit/nova:{release}-ubuntu_noble"


def test_images_come_from_another_registry() -> None:
    rendered = samples.rendered(artifacts={"images_base_url": "registry.local:5000/x/"})
    for name, _ in CHARTS:
        tags = samples.release(rendered, name).values["images"]["tags"]
        assert all(
            image.startswith("registry.local:5000/x/") for image in tags.values()
        )


RIGHT = [
    # Horizon behind TLS: the login form is accepted under the public name.
    *(
        ("openstack-horizon", f"conf.horizon.local_settings.config.{name}", value)
        for name, value in (
            ("secure_proxy_ssl_header", True),
            ("csrf_cookie_secure", "True"),
            ("session_cookie_secure", "True"),
            ("session_cookie_httponly", "True"),
            ("disallow_iframe_embed", "True"),
        )
    ),
    # One cache: every program knows all servers of a headless Service.
    ("openstack-memcached", "network.memcached.service.clusterIP", "None"),
    *(
        (f"openstack-{name}", "endpoints.oslo_cache.statefulset.replicas", 3)
        for name in ("keystone", "glance", "placement", "neutron", "nova", "horizon")
    ),
    (
        *("openstack-nova", "endpoints.oslo_cache.statefulset.name"),
        "openstack-memcached-memcached",
    ),
    (
        *("openstack-neutron", "conf.plugins.openvswitch_agent.securitygroup"),
        {"firewall_driver": "openvswitch"},
    ),
    ("openstack-keystone", "endpoints.identity.hosts.admin", "keystone-api"),
    ("openstack-nova", "endpoints.identity.port.api.admin", 5000),
    (
        "openstack-neutron",
        "labels.netns_cleanup_cron.node_selector_key",
        "openvswitch",
    ),
    ("openstack-neutron", "conf.neutron.DEFAULT.service_plugins", "router,qos"),
    ("openstack-neutron", "conf.plugins.openvswitch_agent.agent.extensions", "qos"),
    ("openstack-neutron", "conf.neutron.DEFAULT.dhcp_agents_per_network", 2),
    ("openstack-neutron", "conf.neutron.database.max_overflow", 70),
    (
        *("openstack-neutron", "conf.plugins.ml2_conf.ml2_type_vxlan.vni_ranges"),
        "1:65535",
    ),
    ("openstack-neutron", "pod.use_fqdn.neutron_agent", False),
    ("openstack-nova", "pod.use_fqdn.compute", False),
    ("openstack-nova", "manifests.ingress_metadata", False),
    ("openstack-nova", "conf.nova.DEFAULT.initial_cpu_allocation_ratio", 8.0),
    ("openstack-nova", "conf.nova.DEFAULT.cpu_allocation_ratio", 0.0),
    ("openstack-nova", "conf.nova.cell0_database", None),
]


@pytest.mark.parametrize(("name", "path", "expected"), RIGHT)
def test_values_that_the_programs_need(name: str, path: str, expected: object) -> None:
    values = samples.release(samples.rendered(size="tiny"), name).values
    assert samples.at(values, path) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"replicas": {"api": 2}}, 1),
        ({"replicas": {"api": 1}}, 0),
        ({"replicas": {"api": 5}}, 2),
        (
            {
                "replicas": {"api": 2},
                "lifecycle": {"disruption_budget": {"api": {"min_available": 2}}},
            },
            2,
        ),
    ],
)
def test_a_budget_lets_a_node_be_drained(pod: model.Tree, expected: int) -> None:
    own = {"identity": {"keystone": {"values": {"pod": pod}}}}
    rendered = samples.rendered(size="tiny", services=own)
    values = samples.release(rendered, "openstack-keystone").values
    path = "pod.lifecycle.disruption_budget.api.min_available"
    assert samples.at(values, path) == expected


REPLICAS = [
    ("single", "openstack-keystone", "api", 1),
    ("tiny", "openstack-keystone", "api", 3),
    ("medium", "openstack-keystone", "api", 15),
    ("single", "openstack-mariadb", "server", 1),
    ("tiny", "openstack-mariadb", "server", 3),
    ("small", "openstack-nova", "osapi", 6),
    ("medium", "openstack-neutron", "rpc_server", 12),
    ("tiny", "openstack-horizon", "server", 2),
    ("tiny", "etcd", "etcd", 3),
]


@pytest.mark.parametrize(("size", "name", "component", "count"), REPLICAS)
def test_replicas_follow_the_size(
    size: str, name: str, component: str, count: int
) -> None:
    values = samples.release(samples.rendered(size=size), name).values

    assert values["pod"]["replicas"][component] == count


WORKERS = [
    ("openstack-glance", "glance_api_uwsgi.uwsgi.processes", (4, 2, 8, 8)),
    ("openstack-neutron", "neutron_api_uwsgi.uwsgi.processes", (4, 2, 16, 16)),
    ("openstack-neutron", "neutron.DEFAULT.rpc_workers", (4, 2, 16, 16)),
    ("openstack-neutron", "neutron.DEFAULT.agent_down_time", (95, 95, 95, 190)),
    ("openstack-neutron", "neutron.agent.report_interval", (30, 30, 30, 60)),
    ("openstack-nova", "nova_api_uwsgi.uwsgi.processes", (4, 1, 8, 8)),
    ("openstack-nova", "nova_metadata_uwsgi.uwsgi.processes", (4, 1, 8, 8)),
    ("openstack-nova", "nova.conductor.workers", (4, 1, 8, 8)),
    ("openstack-nova", "nova.scheduler.workers", (4, 1, 1, 1)),
]


@pytest.mark.parametrize(("name", "path", "counts"), WORKERS)
def test_worker_processes_follow_the_size(
    name: str, path: str, counts: tuple[int, ...]
) -> None:
    """Source: the reference, templates/size."""
    for size, count in zip(("single", "tiny", "small", "medium"), counts, strict=True):
        values = samples.release(samples.rendered(size=size), name).values
        assert samples.at(values, f"conf.{path}") == count, size


LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "chart", ["keystone", "glance", "placement", "neutron", "nova"]
)
def test_each_log_level_reaches_the_logger(chart: str, level: str) -> None:
    features = {"logging": {chart: {"level": level}}}
    values = samples.release(
        samples.rendered(features=features), f"openstack-{chart}"
    ).values
    assert samples.at(values, f"conf.logging.logger_{chart}.level") == level
    assert samples.at(values, f"conf.{chart}.DEFAULT.debug") == (level == "DEBUG")


FILES = {"backends": {"file": {"nfs": {"pvc": {"storage_class_name": "nfs"}}}}}


@pytest.mark.parametrize(
    ("features", "services", "count", "mode"),
    [
        pytest.param({}, {}, 1, "ReadWriteOnce", id="the default volume"),
        pytest.param({"glance": FILES}, {}, 3, "ReadWriteMany", id="a named volume"),
        pytest.param({}, {"api": 2}, 2, "ReadWriteMany", id="replicas of the user"),
    ],
)
def test_glance_has_replicas_only_with_a_volume_of_several_nodes(
    features: dict[str, Any], services: dict[str, Any], count: int, mode: str
) -> None:
    own = {"image": {"glance": {"values": {"pod": {"replicas": services}}}}}
    changes: dict[str, Any] = {"services": own} if services else {}
    rendered = samples.rendered(features=features, **changes)
    values = samples.release(rendered, "openstack-glance").values
    assert values["pod"]["replicas"]["api"] == count
    assert values["volume"]["accessModes"] == [mode]


LABELS = [
    ("openstack-neutron", "agent.dhcp", "openstack-gateway"),
    ("openstack-neutron", "agent.l3", "openstack-gateway"),
    ("openstack-neutron", "agent.metadata", "openstack-gateway"),
    ("openstack-neutron", "ovs", "openvswitch"),
    ("openstack-neutron", "server", "openstack-control-plane"),
    ("openstack-nova", "agent.compute", "openstack-compute-node"),
    ("openstack-libvirt", "agent.libvirt", "openstack-compute-node"),
    ("openstack-keystone", "api", "openstack-control-plane"),
]


@pytest.mark.parametrize(("name", "component", "label"), LABELS)
def test_labels(name: str, component: str, label: str) -> None:
    values = samples.release(samples.rendered(), name).values

    path = f"labels.{component}.node_selector_key"
    assert samples.at(values, path) == label


COMPUTED = [
    ("openstack-nova", "conf.nova.libvirt.images_type", "qcow2"),
    ("openstack-nova", "conf.ceph.enabled", False),
    ("openstack-nova", "conf.libvirt.live_migration_interface", "ens4"),
    ("openstack-libvirt", "conf.dynamic_options.libvirt.listen_interface", "ens4"),
    ("openstack-libvirt", "conf.ceph.enabled", False),
    ("openstack-neutron", "network.interface.tunnel", "ens3"),
    ("openstack-neutron", "network.backend", ["openvswitch"]),
    ("openstack-neutron", "conf.neutron.DEFAULT.dns_domain", "openstack.internal."),
    (
        "openstack-neutron",
        "conf.neutron.DEFAULT.allow_automatic_l3agent_failover",
        False,
    ),
    ("openstack-neutron", "conf.plugins.openvswitch_agent.agent.vxlan_udp_port", 4790),
    ("openstack-neutron", "conf.plugins.openvswitch_agent.ovs.ovsdb_timeout", 30),
    ("openstack-nova", "conf.nova.DEFAULT.service_down_time", 180),
    ("openstack-nova", "conf.nova.oslo_policy.enforce_scope", False),
    ("openstack-keystone", "conf.keystone.oslo_policy.enforce_new_defaults", False),
    ("openstack-nova", "pod.useHostNetwork.novncproxy", False),
    (
        "openstack-nova",
        "pod.lifecycle.upgrades.daemonsets.compute.max_unavailable",
        "10%",
    ),
    ("openstack-neutron", "manifests.daemonset_sriov_agent", False),
    ("openstack-neutron", "manifests.daemonset_lb_agent", False),
    ("openstack-neutron", "bootstrap.enabled", False),
    ("openstack-glance", "storage", "pvc"),
    (
        "openstack-glance",
        "pod.affinity.anti.type.default",
        "preferredDuringSchedulingIgnoredDuringExecution",
    ),
    (
        "openstack-mariadb",
        "pod.affinity.anti.type.default",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ),
    ("openstack-glance", "volume.class_name", "network"),
    ("openstack-glance", "manifests.job_bootstrap", False),
    ("openstack-mariadb", "volume.class_name", "local"),
    ("openstack-keystone", "manifests.job_image_repo_sync", False),
    ("openstack-keystone", "manifests.pod_rally_test", False),
    ("openstack-keystone", "endpoints.cluster_domain_suffix", "cluster.local"),
    (
        "openstack-keystone",
        "endpoints.oslo_messaging.statefulset",
        {"name": "openstack-rabbitmq-rabbitmq", "replicas": 1},
    ),
    (
        "openstack-keystone",
        "endpoints.identity.host_fqdn_override.public.host",
        "keystone.cloud.example.com",
    ),
    (
        "openstack-nova",
        "endpoints.compute_novnc_proxy.port.novnc_proxy.public",
        443,
    ),
    ("openstack-horizon", "endpoints.dashboard.scheme.public", "https"),
]


@pytest.mark.parametrize(("name", "path", "value"), COMPUTED)
def test_computed_values(name: str, path: str, value: object) -> None:
    assert samples.at(samples.release(samples.rendered(), name).values, path) == value


def test_nova_and_neutron_share_the_metadata_secret() -> None:
    rendered = samples.rendered()
    nova = samples.release(rendered, "openstack-nova").values["conf"]
    neutron = samples.release(rendered, "openstack-neutron").values["conf"]

    secret = nova["nova"]["neutron"]["metadata_proxy_shared_secret"]
    assert secret
    for agent in ("metadata_agent", "ovn_metadata_agent"):
        assert neutron[agent]["DEFAULT"]["metadata_proxy_shared_secret"] == secret


def test_older_charts_share_the_account_of_neutron() -> None:
    old = with_version("2025.1.0")
    new = with_version("2026.1.0")
    path = "endpoints.identity.auth.neutron.password"
    for rendered, is_shared in ((old, True), (new, False)):
        nova = samples.at(samples.release(rendered, "openstack-nova").values, path)
        neutron = samples.at(
            samples.release(rendered, "openstack-neutron").values, path
        )
        assert (nova == neutron) is is_shared


def test_a_checkout_after_the_newest_tag_has_no_public_password() -> None:
    """It calls itself 2026.1.0, and has another database of Nova than that tag."""
    values = samples.release(with_version("2026.1.0"), "openstack-nova").values
    for database in ("oslo_db_api", "oslo_db_cell1"):
        path = f"endpoints.{database}.auth.nova.password"
        assert samples.at(values, path).startswith("placeholder")


def test_order_of_layers() -> None:
    """Template, then common, then the service."""
    path = "endpoints.identity.namespace"
    overrides: list[model.Tree] = [
        {"common": {"charts": {"values": value_at(path, "charts")}}},
        {"common": {"charts": {"releases": {"values": value_at(path, "releases")}}}},
        {"common": {"openstack": {"values": value_at(path, "group")}}},
        {"services": {"identity": {"keystone": {"values": value_at(path, "own")}}}},
    ]
    changes: model.Tree = {}
    for layer, expected in zip(
        overrides, ("charts", "releases", "group", "own"), strict=True
    ):
        changes = merge.merge(changes, layer)
        keystone = samples.release(samples.rendered(**changes), "openstack-keystone")
        assert samples.at(keystone.values, path) == expected
    glance = samples.release(samples.rendered(**changes), "openstack-glance")
    assert samples.at(glance.values, path) == "group"
    mariadb = samples.release(samples.rendered(**changes), "openstack-mariadb")
    assert samples.at(mariadb.values, path) == "releases"


def value_at(path: str, value: str) -> model.Tree:
    """Return values with one value at a path."""
    tree: model.Tree = {}
    node = tree
    *parents, last = path.split(".")
    for key in parents:
        node = node.setdefault(key, {})
    node[last] = value
    return tree


def test_spec_overrides_the_size() -> None:
    own = {"identity": {"keystone": {"values": {"pod": {"replicas": {"api": 5}}}}}}
    keystone = samples.release(samples.rendered(services=own), "openstack-keystone")

    assert keystone.values["pod"]["replicas"]["api"] == 5


def test_wrong_type_refuses_only_its_service() -> None:
    own = {"identity": {"keystone": {"values": {"conf": "text"}}}}
    with pytest.raises(config.ConfigError) as caught:
        samples.rendered(services=own)
    assert "spec.services.identity.keystone.values.conf" in str(caught.value)

    own = {"identity": {"keystone": {"values": {"images": "text"}}}}
    rendered = samples.rendered(services=own)

    (refusal,) = rendered.refusals
    assert (refusal.service, refusal.reason) == (
        "identity",
        model.Reason.INVALID_VALUES,
    )
    path = "spec.services.identity.keystone.values.images"
    assert path in str(refusal.problems[0])
    assert len(rendered.bundles) == 9


PVC = {"pvc": {"size": "1Gi"}}
NODE_CONF: model.Tree = {
    "nova_compute": {"values": {"conf": {"nova": {"a": {"b": 1}}}}}
}
NODES_WITH_PODS = {"nova": {"nova_compute": {"values": {"pod": {"x": 1}}}}}
REFUSED: list[tuple[str, model.Tree, str, model.Reason, str]] = [
    (
        "Ceph images",
        {"features": {"glance": {"backends": {"rbd": {"vms": {"default": True}}}}}},
        "image",
        model.Reason.REQUIRES_CEPH,
        "spec.features.glance.backends.rbd",
    ),
    (
        "Ceph disks",
        {"features": {"nova": {"images": {"backend": "ceph"}}}},
        "compute",
        model.Reason.REQUIRES_CEPH,
        "spec.features.nova.images.backend",
    ),
    (
        "service that is not supported yet",
        {"features": {"services": ["orchestration"]}},
        "orchestration",
        model.Reason.UNSUPPORTED,
        "spec.features.services",
    ),
    (
        "OVN",
        {"features": {"neutron": {"backend": "ml2/ovn"}}},
        "networking",
        model.Reason.UNSUPPORTED,
        "spec.features.neutron.backend",
    ),
    (
        "feature that is not supported yet",
        {"features": {"neutron": {"dvr": {"enabled": True}}}},
        "networking",
        model.Reason.UNSUPPORTED,
        "spec.features.neutron.dvr.enabled",
    ),
    (
        "two file backends",
        {"features": {"glance": {"backends": {"file": {"a": PVC, "b": PVC}}}}},
        "image",
        model.Reason.UNSUPPORTED,
        "spec.features.glance.backends.file",
    ),
    (
        "values of a DaemonSet that the chart lacks",
        {"nodes": {"rack::a": {"services": {"compute": {"nova": {"x": {}}}}}}},
        "compute",
        model.Reason.INVALID_VALUES,
        "spec.nodes.rack::a.services.compute.nova.x",
    ),
    (
        "values of nodes beside the configuration",
        {"nodes": {"rack::a": {"services": {"compute": NODES_WITH_PODS}}}},
        "compute",
        model.Reason.INVALID_VALUES,
        "spec.nodes.rack::a.services.compute.nova.nova_compute.values.pod",
    ),
    (
        "a label of nodes without a value",
        {"nodes": {"rack": {"services": {"compute": {"nova": NODE_CONF}}}}},
        "compute",
        model.Reason.INVALID_VALUES,
        "spec.nodes",
    ),
    (
        "a chart that cannot override nodes",
        {"nodes": {"a::b": {"services": {"networking": {"openvswitch": {"x": {}}}}}}},
        "networking",
        model.Reason.INVALID_VALUES,
        "spec.nodes.a::b.services.networking.openvswitch.x",
    ),
    (
        "features that nodes override",
        {"nodes": {"rack::a": {"features": {"neutron": {"tunnel_interface": "e"}}}}},
        "networking",
        model.Reason.UNSUPPORTED,
        "spec.nodes.rack::a.features.neutron",
    ),
    (
        "theme of the dashboard",
        {"features": {"horizon": {"default_theme": "dark"}}},
        "dashboard",
        model.Reason.UNSUPPORTED,
        "spec.features.horizon.default_theme",
    ),
    (
        "LVM without a volume group",
        {"features": {"nova": {"images": {"backend": "lvm"}}}},
        "compute",
        model.Reason.INVALID_VALUES,
        "spec.features.nova.images.lvm.volume_group",
    ),
    (
        "chart version that is too old",
        {"common": {"infra": {"releases": {"etcd": {"version": "2024.2.0"}}}}},
        "coordination",
        model.Reason.INVALID_VALUES,
        "spec.common.infra.releases",
    ),
]


@pytest.mark.parametrize(
    ("changes", "service", "reason", "field"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_refused_services(
    changes: model.Tree, service: str, reason: model.Reason, field: str
) -> None:
    rendered = samples.rendered(**changes)

    (refusal,) = rendered.refusals
    assert (refusal.service, refusal.reason) == (service, reason)
    assert any(field in problem.field for problem in refusal.problems)
    services = {bundle.service for bundle in rendered.bundles}
    assert services == set(graph.RELEASES) - {service}


def test_values_of_nodes_with_a_label() -> None:
    """Each chart reads them where its DaemonSets look for overrides."""
    conf = {"conf": {"libvirt": {"listen_tls": "1"}}}
    rendered = samples.rendered(
        nodes={
            "rack::a": {
                "services": {
                    "compute": {
                        "libvirt": {"libvirt_libvirt": {"values": conf}},
                        "nova": NODE_CONF,
                    }
                }
            },
            "rack::b": {"services": {"compute": {"nova": NODE_CONF}}},
        }
    )
    libvirt = samples.release(rendered, "openstack-libvirt").values
    nova = samples.release(rendered, "openstack-nova").values

    assert rendered.refusals == ()
    labels = libvirt["overrides"]["libvirt_libvirt"]["labels"]
    assert labels == {"rack::a": {"values": conf}}
    rows = nova["conf"]["overrides"]["nova_compute"]["labels"]
    assert rows == [
        {"label": {"key": "rack", "values": [rack]}, "conf": {"nova": {"a": {"b": 1}}}}
        for rack in ("a", "b")
    ]
    assert "overrides" not in nova


def test_kinds_of_console() -> None:
    rows = {(True, False): "novnc", (False, True): "spice", (False, False): "none"}
    for (novnc, spice), kind in rows.items():
        console = {"novnc": {"enabled": novnc}, "spice": {"enabled": spice}}
        rendered = samples.rendered(features={"nova": {"console": console}})
        values = samples.release(rendered, "openstack-nova").values
        assert values["console"]["console_kind"] == kind


def test_policies_and_log_levels() -> None:
    features = {
        "policies": {"nova": {"os_compute_api:servers:create": "role:admin"}},
        "logging": {"nova": {"level": "DEBUG"}},
    }
    rendered = samples.rendered(features=features)
    nova = samples.release(rendered, "openstack-nova").values["conf"]
    glance = samples.release(rendered, "openstack-glance").values["conf"]

    assert nova["policy"] == features["policies"]["nova"]
    assert nova["nova"]["DEFAULT"]["debug"] is True
    assert glance["glance"]["DEFAULT"]["debug"] is False
    assert "policy" not in glance


def test_version_without_images_is_refused() -> None:
    with pytest.raises(config.ConfigError, match="epoxy, flamingo, gazpacho"):
        samples.rendered(openstack_version="yoga")


def test_unknown_repository_is_refused() -> None:
    rendered = samples.rendered(common={"openstack": {"repo": "other"}})

    assert {refusal.service for refusal in rendered.refusals} >= {"identity", "image"}
    assert '"other"' in str(rendered.refusals[0].problems[0])


def test_public_certificate_is_given_to_the_charts() -> None:
    ssl = {"ca_cert": "CA", "api_cert": "CERT", "api_key": "KEY"}
    rendered = samples.rendered(features={"ssl": {"public_endpoints": ssl}})
    values = samples.release(rendered, "openstack-glance").values

    tls = values["endpoints"]["image"]["host_fqdn_override"]["public"]["tls"]
    assert tls == {"ca": "CA", "crt": "CERT", "key": "KEY"}


def test_external_networks() -> None:
    networks = [
        {
            "physnet": "physnet1",
            "bridge": "br-ex",
            "network_types": ["flat", "vlan"],
            "interface": "ens5",
            "vlan_ranges": "100:200",
            "mtu": 1500,
        },
        {"physnet": "physnet2", "bridge": "br-2", "network_types": ["vlan"]},
    ]
    rendered = samples.rendered(features={"neutron": {"external_networks": networks}})
    conf = samples.release(rendered, "openstack-neutron").values["conf"]

    assert conf["auto_bridge_add"] == {"br-ex": "ens5", "br-2": None}
    ml2 = conf["plugins"]["ml2_conf"]
    assert ml2["ml2_type_vlan"]["network_vlan_ranges"] == "physnet1:100:200,physnet2"
    assert ml2["ml2"]["physical_network_mtus"] == "physnet1:1500"
    ovs = conf["plugins"]["openvswitch_agent"]["ovs"]
    assert ovs["bridge_mappings"] == "physnet1:br-ex,physnet2:br-2"


def test_hash_changes_with_each_part() -> None:
    release = samples.release(samples.rendered(), "etcd")
    other = samples.release(samples.rendered(size="single"), "etcd")
    hashes = {
        hashing.release_hash(release, "sha256:a"),
        hashing.release_hash(release, "sha256:b"),
        hashing.release_hash(other, "sha256:a"),
        hashing.release_hash(release, "sha256:a", {"ceph-etc": "1"}),
    }

    assert len(hashes) == 4
    assert all(len(value) == hashing.LENGTH <= 63 for value in hashes)
    again = samples.release(samples.rendered(), "etcd")
    assert hashing.release_hash(again, "sha256:a") in hashes


def test_two_renders_are_equal() -> None:
    assert samples.rendered() == samples.rendered()


def test_passwords_are_not_printed() -> None:
    assert "placeholder" not in repr(samples.rendered())


GENERATIONS = [
    ("2025.1.0", ("2025.1",)),
    ("2025.1.4+abc", ("2025.1", "2025.2")),
    ("2025.2.0", ("2025.2",)),
    ("2026.1.0", ("2026.1", "later")),
    ("2026.1.0+abc", ("2026.1", "later")),
    ("2026.1.17+abc", ("2026.1", "later")),
    ("2026.2.0", ("later",)),
    ("v2027.1.3", ("later",)),
]


@pytest.mark.parametrize(("version", "expected"), GENERATIONS)
def test_generations(version: str, expected: tuple[str, ...]) -> None:
    assert contract.generations("version", version) == expected


@pytest.mark.parametrize("version", ["2024.2.0", "latest", "", "1.2.3", "2025.3.0.1"])
def test_versions_that_are_refused(version: str) -> None:
    with pytest.raises(config.ConfigError, match="2025.1.0"):
        contract.generations("version", version)


def test_each_chart_has_a_contract_of_each_generation() -> None:
    folder = importlib.resources.files("lib.osdpl.values") / "contracts"
    for generation in contract.GENERATIONS:
        names = {entry.name for entry in (folder / generation).iterdir()}
        assert names == {f"{chart}.json" for _, chart in CHARTS}


def test_charts_belong_to_a_group() -> None:
    known = {*schema.INFRA_CHARTS, *schema.OPENSTACK_CHARTS}
    assert {chart for _, chart in CHARTS} <= known


def test_services_can_be_removed_by_the_layers() -> None:
    deployment = spec.parse(samples.DOCUMENT)
    effective = layers.effective(deployment.spec)

    assert set(layers.services(effective)) == set(graph.RELEASES)
