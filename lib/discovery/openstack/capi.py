"""Documents for Cluster API's OpenStack provider: template, cluster, credentials.

Source: kubernetes-sigs/cluster-api-provider-openstack api/v1beta1; Deckhouse,
cloud-provider-openstack, capi.
"""

from collections.abc import Iterator, Mapping

import yaml

from lib.discovery.openstack import checksums, machine_class, manifests, model
from lib.process import config

API_VERSION = "infrastructure.cluster.x-k8s.io/v1beta1"
CLUSTER_KIND = "OpenStackCluster"
TEMPLATE_KIND = "OpenStackMachineTemplate"
CLUSTER_NAME = "openstack"
CREDENTIALS = "capi-user-credentials"
CLOUD = "openstack"
"""The cloud's name inside clouds.yaml."""
CHECKSUM = "checksum/instance-class"
TAG_MAX = 60
"""Characters. Source: Nova API, server tags."""


def machine_template(
    cluster: model.ClusterFacts, provider: model.ProviderSettings, group: model.Group
) -> manifests.Manifest:
    """Return the template of a group's machines in one zone, of its first generation.

    Old templates outlive a rollout; the node controller numbers those that follow.

    Raises:
        ConfigError: no image or no network is named, or Nova would refuse a tag.
    """
    name = machine_class.name_of(cluster, group)
    checksum = checksums.capi(group.instance_class, group.manual_rollout_id)
    return manifests.for_machines(
        (API_VERSION, TEMPLATE_KIND),
        f"{name}-gen1",
        {"template": {"spec": machine_spec(cluster, provider, group)}},
        {"node-group": group.name},
        {CHECKSUM: checksum, "helm.sh/resource-policy": "keep"},
    )


def machine_spec(
    cluster: model.ClusterFacts, provider: model.ProviderSettings, group: model.Group
) -> Mapping[str, object]:
    """Return the spec of an OpenStackMachine.

    Raises:
        ConfigError: as `machine_template`.
    """
    spec, defaults = group.instance_class, provider.instances
    server_tags = tuple(dict.fromkeys(_tags(cluster, provider, group)))
    config.require(
        (*machine_class.missing(provider, spec), *_refused(server_tags)),
    )
    groups = [
        _named(security_group)
        for security_group in machine_class.security_groups(provider, spec)
    ]
    spec_of_machine: dict[str, object] = {
        "configDrive": True,
        "flavor": spec.flavor_name,
        "image": _named(spec.image_name or defaults.image_name),
    }
    if defaults.ssh_key_pair_name:
        spec_of_machine["sshKeyName"] = defaults.ssh_key_pair_name
    if groups:
        spec_of_machine["securityGroups"] = groups
    mode = model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY
    if groups or provider.pod_network_mode is mode:
        names = machine_class.networks(provider, spec)
        spec_of_machine["ports"] = [
            _port(name, groups, cluster, provider) for name in names
        ]
    if size := spec.root_disk_size_gib:
        zone = {"from": "Machine"}
        spec_of_machine["rootVolume"] = {"sizeGiB": size, "availabilityZone": zone}
    spec_of_machine["tags"] = list(server_tags)
    hint = {"type": "String", "string": group.zone}
    spec_of_machine["schedulerHintAdditionalProperties"] = [
        {"name": "deckhouse-zone", "value": hint}
    ]
    return spec_of_machine


def cluster_object(
    provider: model.ProviderSettings, endpoint: tuple[str, int] | None = None
) -> manifests.Manifest:
    """Return the OpenStackCluster, without management of its API server.

    endpoint: host and port of the first master, if known.
    """
    spec: dict[str, object] = {
        "identityRef": {"name": CREDENTIALS, "cloudName": CLOUD},
        "apiServerLoadBalancer": {"enabled": False},
        "network": _named(provider.internal_network_names[0]),
    }
    if provider.external_network_names:
        spec["externalNetwork"] = _named(provider.external_network_names[0])
    else:
        spec["disableExternalNetwork"] = True
    if endpoint is not None:
        spec["disableAPIServerFloatingIP"] = True
        spec["controlPlaneEndpoint"] = {"host": endpoint[0], "port": endpoint[1]}
    return manifests.for_machines((API_VERSION, CLUSTER_KIND), CLUSTER_NAME, spec)


def credentials(connection: model.Connection) -> manifests.Manifest:
    """Return the Secret with clouds.yaml that the OpenStackCluster refers to."""
    project = {"project_id": connection.tenant_id}
    if not connection.tenant_id:
        project = {"project_name": connection.tenant_name}
    auth = {
        "auth_url": connection.auth_url,
        "username": connection.username,
        "password": connection.password,
        **project,
        "user_domain_name": connection.domain_name,
        "project_domain_name": connection.domain_name,
    }
    cloud: dict[str, object] = {
        "auth": auth,
        "region_name": connection.region,
        "identity_api_version": 3,
    }
    clouds = yaml.safe_dump({"clouds": {CLOUD: cloud}}, sort_keys=False)
    ca = {"cacert": connection.ca_cert} if connection.ca_cert else {}
    return manifests.secret(
        manifests.MACHINES_NAMESPACE, CREDENTIALS, {"clouds.yaml": clouds, **ca}
    )


def _tags(
    cluster: model.ClusterFacts, provider: model.ProviderSettings, group: model.Group
) -> Iterator[str]:
    named = {**provider.tags, **group.instance_class.additional_tags}
    yield from (f"{key}={value}" for key, value in sorted(named.items()))
    yield from group.instance_class.tags
    if group.instance_class.preemptible:
        yield "preemptible"
    yield f"deckhouse-{cluster.uuid}=1"
    yield f"role-deckhouse-{group.name}-{group.zone}=1"
    yield "use-cluster-api=1"


def _refused(tags: tuple[str, ...]) -> Iterator[config.FieldProblem]:
    for tag in tags:
        if not tag or len(tag) > TAG_MAX or "," in tag or "/" in tag:
            expected = f"a tag of 1 to {TAG_MAX} characters without comma and slash"
            yield config.FieldProblem("tags", tag, expected)


def _named(name: str) -> Mapping[str, object]:
    return {"filter": {"name": name}}


def _port(
    network: str,
    groups: list[Mapping[str, object]],
    cluster: model.ClusterFacts,
    provider: model.ProviderSettings,
) -> Mapping[str, object]:
    port: dict[str, object] = {"network": _named(network)}
    if groups:
        port["securityGroups"] = groups
    if machine_class.is_pod_network(network, provider):
        port["allowedAddressPairs"] = [{"ipAddress": cluster.pod_subnet}]
    return port
