"""Values that charts have in common, computed from their contracts."""

from typing import Any

from lib.osdpl.api import merge, model, versions
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract

GATEWAY = "openstack-gateway"
CONTROL_PLANE = "openstack-control-plane"
COMPUTE = "openstack-compute-node"
ENABLED = "enabled"

KEYSTONE_SERVICE, KEYSTONE_PORT = "keystone-api", 5000
"""Service with the pods of Keystone: the admin endpoint, too, as in the reference."""

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_OFF = (
    "job_image_repo_sync",
    "job_db_drop",
    "pod_rally_test",
    "pod_helm_test",
    "pod_test",
)
"""Objects that are never rendered: copies of images, removal of databases, and tests,
whose accounts have public passwords."""

RELEASE = "{release}"
"""In the reference of an image: the place of the OpenStack release."""

_DOMAINS = {"user_domain_name": "service", "project_domain_name": "service"}


def join(*layers: model.Tree) -> model.Tree:
    """Return the merge of values, the last one with the highest precedence."""
    merged: model.Tree = {}
    for layer in layers:
        merged = merge.merge(merged, layer)
    return merged


def infra(
    context: Context, contract: Contract, labels: dict[str, str] | None = None
) -> model.Tree:
    """Return images, labels and switches of any chart.

    labels: label by component, where it is not the chart's default.
    """
    values: model.Tree = {
        "images": {"tags": _images(context, contract)},
        "manifests": {name: False for name in _OFF if name in contract.manifests},
        "endpoints": {"cluster_domain_suffix": context.require("internal_domain_name")},
    }
    selectors = contract.labels | (labels or {})
    if contract.replicas:
        values["pod"] = {"affinity": {"anti": {"type": {"default": PREFERRED}}}}
    labels_of_nodes: model.Tree = {}
    for component, label in selectors.items():
        selector = {"node_selector_key": label, "node_selector_value": ENABLED}
        labels_of_nodes = merge.merge(labels_of_nodes, _nest(component, selector))
    return join(values, {"labels": labels_of_nodes}) if selectors else values


def openstack(
    context: Context,
    contract: Contract,
    service: str,
    labels: dict[str, str] | None = None,
) -> model.Tree:
    """Return the values that every chart of an OpenStack service has in common."""
    endpoints: model.Tree = {"identity": _identity(context, contract, service)}
    for name, users in contract.databases.items():
        endpoints[name] = _database(context, service, users)
    endpoints["oslo_cache"] = _cache(context, contract, service)
    if contract.messaging:
        endpoints["oslo_messaging"] = _messaging(context, service)
    shared = {"endpoints": endpoints}
    public = {"endpoints": _public(context, contract)}
    return join(infra(context, contract, labels), shared, public)


def _images(context: Context, contract: Contract) -> dict[str, str]:
    """Return the images of OpenStack's version; see lib/osdpl/reconcile/images.py."""
    base_url = str(context.get("artifacts.images_base_url", ""))
    return {
        key: versions.relocate(reference.format(release=context.release), base_url)
        for key, reference in contract.images.items()
        if RELEASE in reference
    }


def _nest(path: str, value: Any) -> model.Tree:
    for key in reversed(path.split(".")):
        value = {key: value}
    nested: model.Tree = value
    return nested


def _identity(context: Context, contract: Contract, service: str) -> model.Tree:
    auth: model.Tree = {"admin": admin(context)}
    for account, role in contract.accounts.items():
        auth[account] = _account(context, service, account, role)
    test = {"role": "admin", **_user(context, service, "test"), **_project("test")}
    auth["test"] = {**test, "region_name": context.region}
    return {"namespace": context.namespace, "auth": auth}


def admin(context: Context) -> model.Tree:
    """Return the administrator of the Identity service."""
    domains = context.get("features.keystone.users.admin", {})
    return {
        "region_name": context.region,
        **context.credentials.admin("identity").values(),
        "project_name": domains.get("project_name", "admin"),
        "user_domain_name": domains.get("user_domain_name", "default"),
        "project_domain_name": domains.get("project_domain_name", "default"),
        "default_domain_id": domains.get("default_domain_id", "default"),
    }


def _user(context: Context, service: str, account: str) -> dict[str, str]:
    return context.credentials.account(service, account).values()


def _project(name: str) -> dict[str, str]:
    return {"project_name": name, **_DOMAINS}


def _account(
    context: Context, service: str, account: str, role: str | None
) -> model.Tree:
    owner = service
    if role is None:
        owner = _owner(context, account) or service
    return {
        "role": role or "admin",
        "region_name": context.region,
        **_user(context, owner, account),
        **_project("service"),
    }


def _owner(context: Context, account: str) -> str | None:
    """Return the service of this cloud whose own account it is (charts to 2025.1)."""
    services = context.get("features.services", ())
    owners = (name for name, user in context.users.items() if user == account)
    return next((service for service in owners if service in services), None)


def _database(context: Context, service: str, users: tuple[str, ...]) -> model.Tree:
    user = context.credentials.database(service).values()
    accounts = {name: dict(user) for name in users}
    root = context.credentials.admin("database").values()
    return {"namespace": context.namespace, "auth": {"admin": root, **accounts}}


def _cache(context: Context, contract: Contract, service: str) -> model.Tree:
    """Return the cache: the names of all servers, which are one cache for all pods."""
    path = "services.memcached.memcached.values.pod.replicas.server"
    values: model.Tree = {
        "namespace": context.namespace,
        "statefulset": {
            "name": "openstack-memcached-memcached",
            "replicas": context.get(path, 1),
        },
    }
    if contract.cache_key:
        secret = secret_shapes.service_secret(service)
        key = context.credentials.text(secret, "memcached")
        values["auth"] = {"memcache_secret_key": key}
    return values


def _messaging(context: Context, service: str) -> model.Tree:
    user = context.credentials.messaging(service).values()
    replicas = context.get("services.messaging.rabbitmq.values.pod.replicas.server", 1)
    return {
        "namespace": context.namespace,
        "statefulset": {"name": "openstack-rabbitmq-rabbitmq", "replicas": replicas},
        "auth": {
            "admin": context.credentials.admin("messaging").values(),
            context.users[service]: user,
        },
    }


def _public(context: Context, contract: Contract) -> model.Tree:
    """Return the public names of the endpoints that a chart knows."""
    domain = context.require("public_domain_name")
    endpoints: model.Tree = {}
    for endpoint in contract.endpoints:
        if endpoint not in context.endpoints:
            continue
        name, port = context.endpoints[endpoint]
        public: model.Tree = {"host": f"{name}.{domain}"}
        certificate = context.get("features.ssl.public_endpoints")
        if certificate:
            public["tls"] = {
                "ca": certificate["ca_cert"],
                "crt": certificate["api_cert"],
                "key": certificate["api_key"],
            }
        endpoints[endpoint] = {
            "host_fqdn_override": {"public": public},
            "scheme": {"public": "https"},
            "port": {port: {"public": 443}},
        }
    if "identity" in endpoints:
        # The chart's own name of the admin endpoint leads to a Service without pods.
        endpoints["identity"]["hosts"] = {"admin": KEYSTONE_SERVICE}
        endpoints["identity"]["port"]["api"]["admin"] = KEYSTONE_PORT
    return endpoints


def spread(context: Context) -> model.Tree:
    """Return the anti-affinity of members with a quorum: one per node."""
    rule = PREFERRED if context.get("size") == "single" else REQUIRED
    return {"pod": {"affinity": {"anti": {"type": {"default": rule}}}}}


def program(context: Context, chart: str) -> model.Tree:
    """Return the log level of a program, debug on or off, and its policies."""
    level = context.get(f"features.logging.{chart}.level", "INFO")
    # Programs log by a file with loggers, of which `debug` changes nothing.
    values: model.Tree = {
        "conf": {
            chart: {"DEFAULT": {"debug": level == "DEBUG"}},
            "logging": {f"logger_{chart}": {"level": level}},
        }
    }
    # As in the reference without features.policies.strict_admin.
    scopes = {"enforce_scope": False, "enforce_new_defaults": False}
    values["conf"][chart]["oslo_policy"] = scopes
    policies = context.get(f"features.policies.{chart}")
    if policies:
        values["conf"]["policy"] = policies
    return values
