"""The Secrets hold the keys and the bytes that their readers look for."""

import base64
import dataclasses
from typing import Any

from lib.discovery.dvp import manifests, model, registration, templates

PROJECT = model.Project(namespace="fleet", kubeconfig="kind: Config\n")
PROVIDER = model.ProviderSettings(PROJECT, "ssh-ed25519 AAAA", ("a", "b"))
CLUSTER = model.ClusterFacts("f49dd1c3-a63a-4565-a06c-625e35587eab", "sea")
REGISTRATION = {
    "type": "dvp",
    "region": "default",
    "zones": '["a","b"]',
    "instanceClassKind": "DVPInstanceClass",
    "instanceClassAPIVersion": "v1alpha1",
    "machineClassKind": "",
    "capiClusterKind": "DeckhouseCluster",
    "capiClusterAPIVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
    "capiClusterAPIGroup": "infrastructure.cluster.x-k8s.io",
    "capiClusterName": "dvp",
    "capiMachineTemplateKind": "DeckhouseMachineTemplate",
    "capiMachineTemplateAPIVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
    "capiMachineTemplateAPIGroup": "infrastructure.cluster.x-k8s.io",
    "sshPublicKey": "ssh-ed25519 AAAA",
    "dvp": "{}",
}


def texts(secret: manifests.Manifest) -> dict[str, str]:
    data = secret["data"]
    assert isinstance(data, dict)
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


def where(secret: manifests.Manifest) -> tuple[str, str]:
    metadata: Any = secret["metadata"]
    return metadata["namespace"], metadata["name"]


def test_both_generations_find_the_registration() -> None:
    """One by its name, the other by two labels; every byte is the same."""
    old, new = registration.registrations(PROVIDER)
    assert where(old) == ("kube-system", "d8-node-manager-cloud-provider")
    assert where(new) == ("kube-system", "d8-node-manager-cloud-provider-dvp")
    assert texts(old) == texts(new) == REGISTRATION
    metadata: Any = new["metadata"]
    assert metadata["labels"] == {
        "heritage": "deckhouse",
        "module": "cloud-provider-dvp",
        "cloud-provider.deckhouse.io/registration": "",
        "cloud-provider.deckhouse.io/name": "dvp",
    }


def test_labels_of_vms_and_defaults_are_registered() -> None:
    """Labels as Go writes JSON; without zones and key the reference's defaults."""
    project = dataclasses.replace(PROJECT, additional_vm_labels={"b": "<&>", "a": "ж"})
    secret, _ = registration.registrations(model.ProviderSettings(project))
    observed = texts(secret)
    assert observed["dvp"] == (
        '{"additionalVMLabels":{"a":"ж","b":"\\u003c\\u0026\\u003e"}}'
    )
    assert observed["zones"] == '["default"]'
    assert "sshPublicKey" not in observed


def test_the_kubeconfig_is_encoded_once() -> None:
    """A process gets its text, whatever the key says; capdvp has its own Secret."""
    secrets = registration.credentials(PROJECT, CLUSTER)
    namespace = "d8-cloud-provider-dvp"
    assert list(map(where, secrets)) == [
        (namespace, "dvp-credentials"),
        (namespace, "dvp-credentials-capdvp"),
    ]
    for secret in secrets:
        assert texts(secret) == {
            "kubernetesConfigBase64": "kind: Config\n",
            "namespace": "fleet",
            "clusterUUID": CLUSTER.uuid,
        }


def test_the_newer_generation_has_credentials_of_a_type() -> None:
    """Its value is base64 inside the Secret's own."""
    secret = registration.module_credentials(PROJECT)
    assert where(secret) == ("d8-cloud-provider-dvp", "d8-credentials")
    assert secret["type"] == "cloud-provider.deckhouse.io/credentials"
    observed = texts(secret)
    assert observed["authScheme"] == "kubeconfig"
    assert base64.b64decode(observed["secret"]) == b"kind: Config\n"


def test_both_generations_find_the_templates() -> None:
    """All files by base name: a slash is no character of a key."""
    old, new = templates.secrets()
    assert where(old) == ("kube-system", "d8-node-manager-cloud-provider-dvp-capi")
    assert where(new) == ("kube-system", "d8-cloud-provider-dvp-capi")
    assert texts(old) == texts(new)
    assert texts(old) == {name: templates.text(name) for name in templates.FILES}
