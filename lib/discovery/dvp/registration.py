"""The Secrets that register the cloud with its readers in the cluster. Pure."""

import base64
from collections.abc import Mapping, Sequence

from lib.discovery import go_json
from lib.discovery.dvp import capi, manifests, model

REGISTRATION = "d8-node-manager-cloud-provider"
INSTANCE_CLASS_VERSION = "v1alpha1"
REGION = "default"
"""Of every cluster: a parent has no regions that its children could use."""
CREDENTIALS = ("dvp-credentials", "dvp-credentials-capdvp")
"""For dvp-ccm, CSI and cloud-data-discoverer; and for capdvp."""
CREDENTIALS_TYPE = "cloud-provider.deckhouse.io/credentials"


def registrations(provider: model.ProviderSettings) -> Sequence[manifests.Manifest]:
    """Return the Secrets that register the cloud with the node manager.

    Two of the same content: the older generation reads the first by its name, the newer
    one reads those with the labels.

    Source: deckhouse modules/030-cloud-provider-dvp, registration.
    """
    texts = _registration(provider)
    labels = {
        "cloud-provider.deckhouse.io/registration": "",
        "cloud-provider.deckhouse.io/name": "dvp",
    }
    return tuple(
        manifests.secret(manifests.SYSTEM_NAMESPACE, name, texts, labels)
        for name in (REGISTRATION, f"{REGISTRATION}-dvp")
    )


def _registration(provider: model.ProviderSettings) -> Mapping[str, str]:
    key = {"sshPublicKey": provider.ssh_public_key} if provider.ssh_public_key else {}
    return {
        "type": "dvp",
        "region": REGION,
        "zones": go_json.dump(list(provider.zones)),
        "instanceClassKind": "DVPInstanceClass",
        "instanceClassAPIVersion": INSTANCE_CLASS_VERSION,
        "machineClassKind": "",
        "capiClusterKind": capi.CLUSTER_KIND,
        "capiClusterAPIVersion": capi.API_VERSION,
        "capiClusterAPIGroup": capi.API_GROUP,
        "capiClusterName": capi.CLUSTER_NAME,
        "capiMachineTemplateKind": capi.TEMPLATE_KIND,
        "capiMachineTemplateAPIVersion": capi.API_VERSION,
        "capiMachineTemplateAPIGroup": capi.API_GROUP,
        **key,
        "dvp": go_json.dump(description(provider.project)),
    }


def description(project: model.Project) -> Mapping[str, object]:
    """Return the object that machine templates read as `provider`."""
    labels = dict(project.additional_vm_labels)
    return {"additionalVMLabels": labels} if labels else {}


def credentials(
    project: model.Project, cluster: model.ClusterFacts
) -> Sequence[manifests.Manifest]:
    """Return the Secrets with the kubeconfig of the parent, by component.

    The kubeconfig is encoded once, as any value of a Secret: a process gets its text,
    in spite of the name of the key.

    Source: deckhouse modules/030-cloud-provider-dvp, credentials.
    """
    texts = {
        "kubernetesConfigBase64": project.kubeconfig,
        "namespace": project.namespace,
        "clusterUUID": cluster.uuid,
    }
    return tuple(
        manifests.secret(manifests.MODULE_NAMESPACE, name, texts)
        for name in CREDENTIALS
    )


def module_credentials(project: model.Project) -> manifests.Manifest:
    """Return the Secret from which the newer generation reads the kubeconfig."""
    texts = {
        "authScheme": "kubeconfig",
        "secret": base64.b64encode(project.kubeconfig.encode()).decode(),
    }
    return manifests.secret(
        manifests.MODULE_NAMESPACE, "d8-credentials", texts, kind=CREDENTIALS_TYPE
    )
