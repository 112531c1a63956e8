"""OpenStackMachineClass, from which machine-controller-manager creates instances."""

from collections.abc import Iterator, Mapping

from lib.discovery import manifests as deckhouse
from lib.discovery.openstack import checksums, manifests, model
from lib.process import config

API_VERSION = "machine.sapcloud.io/v1alpha1"
KIND = "OpenStackMachineClass"
CHECKSUM = "checksum/machine-class"
"""Annotation of a MachineDeployment's pod template: a change rolls the machines. Here
it is an annotation of the class, for the controller that writes the deployment."""


def name_of(cluster: model.ClusterFacts, group: model.Group) -> str:
    """Return the name of the class of a group's machines in one zone.

    Source: Deckhouse, node-manager, MachineClass.
    """
    return f"{group.name}-{deckhouse.zone_hash(cluster.uuid, group.zone)}"


def machine_class(
    cluster: model.ClusterFacts, provider: model.ProviderSettings, group: model.Group
) -> manifests.Manifest:
    """Return the class of a group's machines in one zone.

    Raises:
        ConfigError: no image or no network is named, or there are raw tags.

    Source: Deckhouse, cloud-provider-openstack, machine class.
    """
    config.require(tuple(_problems(provider, group)))
    spec, defaults = group.instance_class, provider.instances
    name = name_of(cluster, group)
    body: dict[str, object] = {
        "region": provider.connection.region,
        "availabilityZone": group.zone,
        **({} if provider.external_network_dhcp else {"useConfigDrive": True}),
        "flavorName": spec.flavor_name,
        "imageName": spec.image_name or defaults.image_name,
        "networks": [
            _network(network, provider) for network in networks(provider, spec)
        ],
        "podNetworkCidr": cluster.pod_subnet,
        "keyName": defaults.ssh_key_pair_name,
        "securityGroups": list(security_groups(provider, spec)),
        **(
            {"rootDiskSize": spec.root_disk_size_gib} if spec.root_disk_size_gib else {}
        ),
        "tags": _tags(cluster, provider, group),
        "secretRef": {"namespace": manifests.MACHINES_NAMESPACE, "name": name},
    }
    notes = {CHECKSUM: checksums.mcm(spec, group.manual_rollout_id)}
    return manifests.for_machines((API_VERSION, KIND), name, body, annotations=notes)


def secret(
    cluster: model.ClusterFacts, connection: model.Connection, group: model.Group
) -> manifests.Manifest:
    """Return the credentials beside the class; what is not set has no key.

    The node manager adds `userData`.
    """
    tenant = {"tenantID": connection.tenant_id}
    if not connection.tenant_id:
        tenant = {"tenantName": connection.tenant_name}
    texts = {
        "authURL": connection.auth_url,
        "username": connection.username,
        "password": connection.password,
        "applicationCredentialId": connection.application_credential_id,
        "applicationCredentialName": connection.application_credential_name,
        "applicationCredentialSecret": connection.application_credential_secret,
        "token": connection.token,
        "domainName": connection.domain_name,
        **tenant,
        "caCert": connection.ca_cert,
    }
    return manifests.secret(
        manifests.MACHINES_NAMESPACE,
        name_of(cluster, group),
        {key: text for key, text in texts.items() if text},
    )


def networks(
    provider: model.ProviderSettings, spec: model.InstanceClass
) -> tuple[str, ...]:
    """Return the names of an instance's networks, the main one first, each once.

    Additional networks of the class replace the provider's.
    """
    main = spec.main_network or provider.instances.main_network
    more = spec.additional_networks or provider.instances.additional_networks
    return tuple(dict.fromkeys(name for name in (main, *more) if name))


def security_groups(
    provider: model.ProviderSettings, spec: model.InstanceClass
) -> tuple[str, ...]:
    """Return an instance's security groups, the provider's first, each once."""
    provided = provider.instances.security_groups
    return tuple(dict.fromkeys((*provided, *spec.additional_security_groups)))


def is_pod_network(name: str, provider: model.ProviderSettings) -> bool:
    """Report whether pods' addresses must pass the ports of a network."""
    mode = model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY
    return provider.pod_network_mode is mode and name in provider.internal_network_names


def missing(
    provider: model.ProviderSettings, spec: model.InstanceClass
) -> Iterator[config.FieldProblem]:
    """Yield a problem for each field that neither the class nor the provider sets."""
    for field, value in (
        ("imageName", spec.image_name or provider.instances.image_name),
        ("mainNetwork", spec.main_network or provider.instances.main_network),
    ):
        if not value:
            expected = f"a name, here or in the provider's instances.{field}"
            yield config.not_set(field, expected)


def _problems(
    provider: model.ProviderSettings, group: model.Group
) -> Iterator[config.FieldProblem]:
    yield from missing(provider, group.instance_class)
    if group.instance_class.tags:
        text = "not supported: raw server tags require Cluster API"
        yield config.stated("tags", text)


def _network(name: str, provider: model.ProviderSettings) -> Mapping[str, object]:
    if is_pod_network(name, provider):
        return {"name": name, "podNetwork": True}
    return {"name": name}


def _tags(
    cluster: model.ClusterFacts, provider: model.ProviderSettings, group: model.Group
) -> Mapping[str, str]:
    return {
        **provider.tags,
        **group.instance_class.additional_tags,
        f"kubernetes.io-cluster-deckhouse-{cluster.uuid}": "1",
        f"kubernetes.io-role-deckhouse-{group.name}-{group.zone}": "1",
    }
