"""Examples of each rule: what it refuses and what it admits.

For the pure table, and for the webhook behind a real API server.
"""

import dataclasses
from typing import Any

from lib.osdpl.api import merge
from lib.osdpl.rules.rule import Change

BASE: dict[str, Any] = {
    "openstack_version": "gazpacho",
    "preset": "core",
    "features": {"services": [], "neutron": {"backend": "ml2"}, "nova": {}},
}
Tree = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Example:
    """rule: its name. Fields with an underscore are facts beside the spec."""

    rule: str
    invalid: Tree
    valid: Tree


def spec(**changes: Any) -> Tree:
    return dict(changes)


def of(service: str, version: str = "gazpacho", **features: Any) -> Tree:
    """Return a spec with a service, a version and features."""
    services = {"services": [service]} if service else {}
    return {"openstack_version": version, "features": {**services, **features}}


def neutron(*layers: Tree, version: str = "gazpacho", **features: Any) -> Tree:
    merged: Tree = {}
    for layer in (*layers, features):
        merged |= layer
    return of("networking", version, neutron=merged)


def keystone(**features: Any) -> Tree:
    return of("identity", keystone=features)


def cinder(conf: Tree) -> Tree:
    backends = {"ssd": {"type": "statefulset", "values": {"conf": conf}}}
    return of("block-storage", cinder={"volume": {"backends": backends}})


def manila(conf: Tree) -> Tree:
    backends = {"nfs": {"type": "statefulset", "values": {"conf": {"manila": conf}}}}
    return of("shared-file-system", manila={"share": {"backends": backends}})


def glance(**backends: Tree) -> Tree:
    return of("image", glance={"backends": backends})


def backup(**remotes: Any) -> Tree:
    sync = {"enabled": True, "remotes": remotes}
    return of("database", database={"backup": {"enabled": True, "sync_remote": sync}})


def drivers(first: Tree, second: Tree) -> Tree:
    both = {"a": first, "b": second}
    return of("block-storage", cinder={"backup": {"drivers": both}})


def endpoints(key: str) -> Tree:
    texts = {"ca_cert": "x", "api_cert": "x", "api_key": key}
    return of("", ssl={"public_endpoints": texts})


def theme(missing: str = "") -> Tree:
    whole = dict.fromkeys(("name", "url", "sha256summ", "description"), "x")
    fields = {name: text for name, text in whole.items() if name != missing}
    return of("dashboard", horizon={"themes": [{**fields, "enabled": True}]})


def without(tree: Tree, *names: str) -> Tree:
    return {name: value for name, value in tree.items() if name not in names}


def upgrade(before: str, after: str, **changes: Any) -> Tree:
    return {"openstack_version": after, "_from": before, **changes}


PINNED = {"values": {"images": {"tags": {"api": "x"}}}}
SECTION = {"volume_backend_name": "ssd", "volume_driver": "x"}
ENABLED = {"DEFAULT": {"enabled_backends": "ssd"}}
SHARE = {"share_backend_name": "nfs", "share_driver": "x"}
SHARES = {"DEFAULT": {"enabled_share_backends": "nfs"}}
PVC = {"storage_class_name": "local", "size": "1Gi"}
S3 = {
    "type": "s3",
    "provider": "Ceph",
    "access_key_id": "x",
    "secret_access_key": "x",
    "endpoint": "http://x",
}
REMOTE = {"path": "x", "conf": S3}
OPENID = {"enabled": True, "providers": {}}
SWITCH = {"device_type": "x", "ip": "192.0.2.1", "username": "x"}
TF = {"backend": "tungstenfabric"}
OVN = {"backend": "ml2/ovn"}
ON, OFF = {"enabled": True}, {"enabled": False}
IRONIC = {"provisioning_interface": "ens3", "baremetal_network_name": "x"}
DRIVER = {**ON, "type": "s3"}
NFS = {"server": "192.0.2.1", "path": "/x"}
BGP = {**ON, "as_number": 64512}
PEERS = {"peers": ["192.0.2.1"]}
DOMAIN = {**ON, "name": "x", "config": {"x": 1}}
PROVIDER = {**ON, "issuer": "https://x", "description": "x"}
CLEANED = "barbican masakari nova cinder glance heat aodh manila horizon".split()


def rotated(number: int | None) -> Tree:
    group = {} if number is None else {"admin": {"rotation_id": number}}
    return {"credentials": group}


def certificate(number: int) -> Tree:
    return {"certificates": {"octavia": {"amphora": {"rotation_id": number}}}}


EXAMPLES = (
    Example(
        "openstack: a released version",
        of("", "master"),
        of("", "gazpacho"),
    ),
    Example(
        "openstack: one per cluster",
        spec(_others=("openstack/first",)),
        spec(_others=()),
    ),
    Example(
        "openstack: no downgrade",
        upgrade("gazpacho", "flamingo"),
        upgrade("flamingo", "gazpacho"),
    ),
    Example(
        "openstack: one version at a time",
        upgrade("caracal", "flamingo"),
        upgrade("epoxy", "flamingo"),
    ),
    Example(
        "openstack: SLURP distance",
        upgrade("caracal", "gazpacho"),
        upgrade("epoxy", "gazpacho"),
    ),
    Example(
        "openstack: no other change",
        upgrade("epoxy", "flamingo", size="small", _before={"size": "tiny"}),
        upgrade("epoxy", "flamingo", size="tiny", _before={"size": "tiny"}),
    ),
    Example(
        "openstack: no pinned images of services",
        upgrade("epoxy", "flamingo", services={"compute": {"nova": PINNED}}),
        upgrade("epoxy", "epoxy", services={"compute": {"nova": PINNED}}),
    ),
    Example(
        "openstack: no pinned images in common",
        upgrade("epoxy", "flamingo", common={"openstack": PINNED}),
        upgrade("epoxy", "epoxy", common={"openstack": PINNED}),
    ),
    Example(
        "openstack: applied before an upgrade",
        upgrade("epoxy", "flamingo", _state="APPLYING"),
        upgrade("epoxy", "flamingo"),
    ),
    Example(
        "instance-ha since victoria", of("instance-ha", "ussuri"), of("instance-ha")
    ),
    Example("metric before flamingo", of("metric"), of("metric", "epoxy")),
    Example(
        "metric-storage since gazpacho",
        of("metric-storage", "flamingo"),
        of("metric-storage"),
    ),
    Example(
        "baremetal without compute-tf",
        {**of("baremetal", ironic=IRONIC), "preset": "compute-tf"},
        of("baremetal", ironic=IRONIC),
    ),
    Example("event before xena", of("event", "xena"), of("event", "wallaby")),
    Example(
        "shared-file-system since yoga",
        of("shared-file-system", "xena"),
        of("shared-file-system"),
    ),
    Example(
        "ssl: a key without a password",
        endpoints("-- ENCRYPTED PRIVATE KEY --"),
        endpoints("-- PRIVATE KEY --"),
    ),
    Example(
        "features.policies.strict_admin.enabled since yoga",
        of("", "xena", policies={"strict_admin": ON}),
        of("", policies={"strict_admin": ON}),
    ),
    *(
        Example(
            f"features.database.cleanup.{name}.schedule is a schedule",
            of("", database={"cleanup": {name: {"schedule": "1 1 1 1"}}}),
            of("", database={"cleanup": {name: {"schedule": "0 1 * * mon"}}}),
        )
        for name in CLEANED
    ),
    Example(
        "features.database.backup.schedule_time is a schedule",
        of("", database={"backup": {**ON, "schedule_time": "61 * * * *"}}),
        of("", database={"backup": {**ON, "schedule_time": "@daily"}}),
    ),
    Example(
        "migration: state of the ingress",
        spec(migration={"ingress": {"state": "gone"}}),
        spec(migration={"ingress": {"state": "absent"}}),
    ),
    Example(
        "nodes: label and value",
        spec(nodes={"rack": {}}),
        spec(nodes={"rack::a": {}}),
    ),
    Example(
        "openstack: no change during an upgrade",
        spec(_written={"size": "tiny"}, _recorded={"size": "x"}, _is_upgrading=True),
        spec(
            _written={"size": "tiny"},
            _recorded={"size": "x"},
            _is_upgrading=True,
            _forced=frozenset(("change",)),
        ),
    ),
    Example(
        "timeouts: seconds",
        spec(timeouts={"application_readiness": {"nova": {"timeout": 0}}}),
        spec(timeouts={"application_readiness": {"nova": {"timeout": 1, "delay": 0}}}),
    ),
    Example(
        "deletion: applied before",
        spec(_state="APPLYING", _is_deletion=True),
        spec(_state="APPLIED", _is_deletion=True),
    ),
    Example(
        "rotation: applied before",
        spec(_state="APPLYING", _status=rotated(2), _status_before=rotated(1)),
        spec(_status=rotated(2), _status_before=rotated(1)),
    ),
    Example(
        "rotation: no group removed",
        spec(_status=rotated(None), _status_before=rotated(1)),
        spec(_status=rotated(1), _status_before=rotated(1)),
    ),
    Example(
        "rotation: a positive number",
        spec(_status=rotated(0), _status_before=rotated(None)),
        spec(_status=rotated(1), _status_before=rotated(None)),
    ),
    Example(
        "rotation: never less",
        spec(_status=rotated(1), _status_before=rotated(3)),
        spec(_status=rotated(4), _status_before=rotated(3)),
    ),
    Example(
        "rotation: one more",
        spec(_status=certificate(3), _status_before=certificate(1)),
        spec(_status=certificate(2), _status_before=certificate(1)),
    ),
    Example(
        "cinder: backup drivers since yoga",
        of("block-storage", "xena", cinder={"backup": {"drivers": {"a": DRIVER}}}),
        of("block-storage", cinder={"backup": {"drivers": {"a": DRIVER}}}),
    ),
    Example(
        "cinder: one backup driver",
        drivers(DRIVER, DRIVER),
        drivers(DRIVER, {**DRIVER, **OFF}),
    ),
    Example(
        "cinder volume backend: DEFAULT.enabled_backends",
        cinder({"cinder": {"DEFAULT": {}}}),
        cinder({"cinder": ENABLED, "backends": {"ssd": SECTION}}),
    ),
    *(
        Example(
            f"cinder section: {name}",
            cinder({"cinder": ENABLED, "backends": {"ssd": without(SECTION, name)}}),
            cinder({"cinder": ENABLED, "backends": {"ssd": SECTION}}),
        )
        for name in SECTION
    ),
    Example(
        "glance: validation of signatures",
        of("image", glance={"signature": {"certificate_validation": True}}),
        of("image", glance={"signature": {"certificate_validation": True, **ON}}),
    ),
    Example(
        "glance: type or backend of volumes",
        glance(cinder={"a": {"default": True}}),
        glance(cinder={"a": {"default": True, "cinder_volume_type": "x"}}),
    ),
    Example(
        "glance: type and volume",
        glance(cinder={"a": {"default": True, "backend_name": "x"}}),
        glance(cinder={"a": {"default": True, "backend_name": "x:y"}}),
    ),
    Example(
        "glance: a default backend",
        glance(rbd={"a": {"backend_name": "x"}}),
        glance(rbd={"a": {"backend_name": "x", "default": True}}),
    ),
    Example(
        "glance: one default backend",
        glance(rbd={"a": {"default": True}, "b": {"default": True}}),
        glance(rbd={"a": {"default": True}, "b": {"default": False}}),
    ),
    Example(
        "glance: one file backend",
        glance(file={"a": {"default": True, "pvc": PVC}, "b": {"pvc": PVC}}),
        glance(file={"a": {"default": True, "pvc": PVC}}),
    ),
    *(
        Example(
            f"glance file backend: {name}",
            glance(file={"a": {"default": True, "pvc": without(PVC, name)}}),
            glance(file={"a": {"default": True, "pvc": PVC}}),
        )
        for name in PVC
    ),
    Example(
        "manila backend: DEFAULT.enabled_share_backends",
        manila({"DEFAULT": {}}),
        manila({**SHARES, "nfs": SHARE}),
    ),
    *(
        Example(
            f"manila section: {name}",
            manila({**SHARES, "nfs": without(SHARE, name)}),
            manila({**SHARES, "nfs": SHARE}),
        )
        for name in SHARE
    ),
    Example(
        "database: NFS of backups",
        of("database", database={"backup": {**ON, "backend": "pv_nfs"}}),
        of("database", database={"backup": {**ON, "backend": "pv_nfs", "pv_nfs": NFS}}),
    ),
    Example(
        "database: one remote of backups",
        backup(a=REMOTE, b=REMOTE),
        backup(a=REMOTE),
    ),
    *(
        Example(
            f"backup remote: {name}", backup(a=without(REMOTE, name)), backup(a=REMOTE)
        )
        for name in REMOTE
    ),
    Example(
        "backup remote: type",
        backup(a={"path": "x", "conf": {"provider": "x"}}),
        backup(a={"path": "x", "conf": {"type": "sftp"}}),
    ),
    *(
        Example(
            f"backup remote s3: {name}",
            backup(a={"path": "x", "conf": without(S3, name)}),
            backup(a=REMOTE),
        )
        for name in ("provider", "access_key_id", "secret_access_key")
    ),
    Example(
        "backup remote Ceph: endpoint",
        backup(a={"path": "x", "conf": without(S3, "endpoint")}),
        backup(a={"path": "x", "conf": {**without(S3, "endpoint"), "provider": "AWS"}}),
    ),
    Example(
        "features.database.cleanup.nova.enabled since antelope",
        of("compute", "yoga", database={"cleanup": {"nova": ON}}),
        of("compute", database={"cleanup": {"nova": ON}}),
    ),
    Example(
        "neutron: physical network of the floating one",
        neutron(floating_network=ON),
        neutron(floating_network={**ON, "physnet": "x"}),
    ),
    Example(
        "neutron: peers of BGP VPN",
        neutron(bgpvpn=BGP),
        neutron(bgpvpn={**BGP, **PEERS}),
    ),
    *(
        Example(
            f"features.neutron.{name} without tungstenfabric",
            neutron(TF, {name: on}),
            neutron(TF, {name: {**on, **OFF}}),
        )
        for name, on in (("ipsec", ON), ("bgpvpn", {**BGP, **PEERS}))
    ),
    *(
        Example(
            f"features.neutron.extensions.{name} without tungstenfabric",
            neutron(TF, extensions={name: ON}),
            neutron(extensions={name: ON}),
        )
        for name in ("vpnaas", "dynamic_routing", "portprober")
    ),
    Example(
        "neutron: floating network of Tungsten Fabric",
        neutron(TF, floating_network={**ON, "physnet": "x"}),
        neutron(TF, floating_network=ON),
    ),
    Example(
        "neutron: devices or hardware",
        neutron(
            baremetal={
                "ngs": {"devices": [{**SWITCH, "name": "x"}], "hardware": {"a": SWITCH}}
            }
        ),
        neutron(baremetal={"ngs": {"devices": [{**SWITCH, "name": "x"}]}}),
    ),
    Example(
        "neutron: hardware",
        neutron(baremetal={"ngs": {"hardware": {"a": without(SWITCH, "ip")}}}),
        neutron(baremetal={"ngs": {"hardware": {"a": SWITCH}}}),
    ),
    Example(
        "neutron: OVN since yoga",
        neutron(OVN, version="xena"),
        neutron(OVN, version="yoga"),
    ),
    Example(
        "neutron: OVN or Tungsten Fabric",
        {**neutron(OVN), "preset": "compute-tf"},
        {**neutron(TF), "preset": "compute-tf"},
    ),
    *(
        Example(
            f"features.neutron.{name} without ml2/ovn",
            neutron(OVN, {name: on}),
            neutron({name: on}),
        )
        for name, on in (("ipsec", ON), ("bgpvpn", {**BGP, **PEERS}))
    ),
    Example(
        "neutron: VPN with OVN since caracal",
        neutron(OVN, version="antelope", extensions={"vpnaas": ON}),
        neutron(OVN, extensions={"vpnaas": ON}),
    ),
    *(
        Example(
            f"features.neutron.extensions.{name}.enabled since {since}",
            neutron(version=before, extensions={name: ON}),
            neutron(version=since, extensions={name: ON}),
        )
        for name, before, since in (
            ("vpnaas", "xena", "yoga"),
            ("dynamic_routing", "xena", "yoga"),
            ("portprober", "yoga", "antelope"),
        )
    ),
    Example(
        "neutron: geneve with OVN only",
        neutron(tenant_network_types=["geneve"]),
        neutron(OVN, tenant_network_types=["geneve"]),
    ),
    Example(
        "barbican: namespace of vault since victoria",
        of(
            "key-manager",
            "ussuri",
            barbican={"backends": {"vault": {**ON, "namespace": "x"}}},
        ),
        of("key-manager", barbican={"backends": {"vault": {**ON, "namespace": "x"}}}),
    ),
    *(
        Example(f"horizon theme: {name}", theme(name), theme())
        for name in ("url", "description", "sha256summ", "name")
    ),
    Example(
        "ironic: settings of baremetal",
        of("baremetal"),
        of("baremetal", ironic=IRONIC),
    ),
    Example(
        "keystone: address of keycloak",
        keystone(keycloak=ON),
        keystone(keycloak={**ON, "url": "https://x"}),
    ),
    Example(
        "keystone: domains or ks_domains",
        keystone(
            domain_specific_configuration={
                "domains": [DOMAIN],
                "ks_domains": {"a": {**ON, "config": {"x": 1}}},
            }
        ),
        keystone(domain_specific_configuration={"domains": [DOMAIN]}),
    ),
    Example(
        "keystone domain: config",
        keystone(domain_specific_configuration={"ks_domains": {"a": ON}}),
        keystone(
            domain_specific_configuration={
                "ks_domains": {"a": {**ON, "config": {"x": 1}}}
            }
        ),
    ),
    Example(
        "keystone domain: enabled",
        keystone(domain_specific_configuration={"ks_domains": {"a": {"config": {}}}}),
        keystone(
            domain_specific_configuration={"ks_domains": {"a": {**OFF, "config": {}}}}
        ),
    ),
    Example(
        "keystone: keycloak or federation",
        keystone(keycloak={**ON, "url": "https://x"}, federation={"openid": OPENID}),
        keystone(keycloak=OFF, federation={"openid": OPENID}),
    ),
    Example(
        "keystone: one provider with oauth20",
        keystone(
            federation={
                "openid": {
                    **ON,
                    "oidc_auth_type": "oauth20",
                    "providers": {"a": PROVIDER, "b": PROVIDER},
                }
            }
        ),
        keystone(
            federation={
                "openid": {
                    **ON,
                    "oidc_auth_type": "oauth20",
                    "providers": {"a": PROVIDER, "b": {**PROVIDER, **OFF}},
                }
            }
        ),
    ),
    Example(
        "nova: encryption with lvm only",
        of("compute", nova={"images": {"backend": "qcow2", "encryption": ON}}),
        of("compute", nova={"images": {"backend": "lvm", "encryption": ON}}),
    ),
    Example(
        "nova: a model of the host alone",
        of("compute", nova={"vcpu_type": "host-model,Nehalem"}),
        of("compute", nova={"vcpu_type": "host-model"}),
    ),
    Example(
        "nova: several models since train",
        of("compute", "stein", nova={"vcpu_type": "Nehalem,Haswell"}),
        of("compute", nova={"vcpu_type": "Nehalem,Haswell"}),
    ),
)


def change(tree: Tree) -> Change:
    """Return what an example describes."""
    facts = {name[1:]: value for name, value in tree.items() if name[0] == "_"}
    own = {name: value for name, value in tree.items() if name[0] != "_"}
    whole = merge.merge(BASE, {**own, "features": without_backend(own)})
    if own.get("features", {}).get("neutron", {}).get("backend"):
        whole["features"]["neutron"]["backend"] = own["features"]["neutron"]["backend"]
    if "before" in facts:
        facts["before"] = {**whole, **facts["before"]}
    facts["version"] = facts.pop("from", "")
    return Change(spec=whole, **{"state": "APPLIED", **facts})


def without_backend(own: Tree) -> Tree:
    features = dict(own.get("features", {}))
    if "neutron" in features:
        features["neutron"] = without(features["neutron"], "backend")
    return features
