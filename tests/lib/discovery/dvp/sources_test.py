"""Many documents become one description of the cluster, or all their problems."""

import base64
import json
from typing import Any

import pytest
import yaml

from lib.discovery.dvp import model, render, sources
from lib.process import config
from tests.lib.discovery.dvp.samples import KEY, KUBECONFIG, UUID, machine_class

Document = dict[str, Any]

CLUSTER = {"kind": "ClusterConfiguration", "cloud": {"prefix": "sea"}}
DISCOVERED = {
    "apiVersion": "deckhouse.io/v1",
    "kind": "DVPCloudDiscoveryData",
    "zones": ["a", "b"],
    "storageClasses": [
        {"name": "Fast SSD", "isEnabled": True, "isDefault": True},
        {"name": "slow", "isEnabled": True},
        {"name": "hidden"},
    ],
}
TEXT = yaml.safe_dump(KUBECONFIG)
CREDENTIALS: Document = {
    "kind": "Secret",
    "type": "cloud-provider.deckhouse.io/credentials",
    "metadata": {"name": "d8-credentials"},
    "stringData": {
        "authScheme": "kubeconfig",
        "secret": base64.b64encode(TEXT.encode()).decode(),
    },
}
CLASS = {
    "kind": "DVPInstanceClass",
    "metadata": {"name": "worker"},
    "spec": machine_class(),
}


def module_config(version: int, **settings: object) -> Document:
    return {
        "kind": "ModuleConfig",
        "metadata": {"name": "cloud-provider-dvp"},
        "spec": {"version": version, "settings": settings},
    }


SECOND = module_config(
    2,
    nodes={"parameters": {"layout": "Standard", "sshPublicKey": KEY, "zones": ["z"]}},
    provider={"parameters": {"namespace": "fleet", "networkPolicy": "None"}},
    storage={"parameters": {"excludedStorageClasses": ["slow"]}},
)


def node_group(name: str, **more: object) -> Document:
    reference = {"kind": "DVPInstanceClass", "name": "worker"}
    cloud = {"classReference": reference, **more}
    return {
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"cloudInstances": cloud},
    }


def problems(*documents: object, uuid: str = UUID) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        sources.read(documents, uuid)
    return str(caught.value).splitlines()


def names(documents: tuple[Document, ...]) -> list[str]:
    return [f"{item['kind']}/{item['metadata']['name']}" for item in documents]


def test_a_configuration_alone_is_enough(configuration: Document) -> None:
    """Zones have the reference's default until the parent was read."""
    observed = sources.read([configuration], UUID)
    assert observed.provider.zones == ("default",)
    assert observed.provider.project == model.Project("fleet", TEXT)
    assert observed.classes == ()


def test_everything_of_the_first_generation(configuration: Document) -> None:
    """Secrets, machines, the parent's policy, values; unused kinds are listed."""
    observed = sources.read(
        [
            configuration,
            CLUSTER,
            DISCOVERED,
            module_config(1, storageClass={"exclude": ["s.*"]}),
            CLASS,
            node_group("worker", zones=["b"]),
            node_group("other"),
            {"kind": "InitConfiguration"},
        ],
        UUID,
    )
    assert observed.skipped == ("InitConfiguration",)
    rendered = render.render(observed)
    assert names(rendered.secrets) == [
        "Secret/d8-node-manager-cloud-provider",
        "Secret/d8-node-manager-cloud-provider-dvp",
        "Secret/dvp-credentials",
        "Secret/dvp-credentials-capdvp",
        "Secret/d8-node-manager-cloud-provider-dvp-capi",
        "Secret/d8-cloud-provider-dvp-capi",
        "Secret/d8-provider-cluster-configuration",
    ]
    assert len(rendered.templates) == 1 + 1 + 2
    assert names(rendered.templates)[0] == "DeckhouseCluster/dvp"
    assert names(rendered.parent) == ["NetworkPolicy/isolated-sea"]
    values: Any = rendered.values["cloudProviderDvp"]
    assert values["internal"]["storageClasses"] == [
        {"name": "fast-ssd", "dvpStorageClass": "Fast SSD"}
    ]
    assert values["internal"]["defaultStorageClass"] == "fast-ssd"
    assert json.dumps(rendered.values)


def test_the_second_generation_has_no_configuration() -> None:
    """Its settings and its Secret describe the same; the Secret is rendered again."""
    observed = sources.read([SECOND, CREDENTIALS, DISCOVERED], UUID)
    project = observed.provider.project
    assert (project.namespace, project.kubeconfig) == ("fleet", TEXT)
    assert project.network_policy is model.NetworkPolicy.NONE
    assert observed.provider.ssh_public_key == KEY
    assert [item.name for item in observed.classes] == ["fast-ssd"]
    rendered = render.render(observed)
    assert "Secret/d8-credentials" in names(rendered.secrets)
    assert rendered.parent == ()
    encoded = {
        "kind": "Secret",
        "type": CREDENTIALS["type"],
        "data": {
            key: base64.b64encode(text.encode()).decode()
            for key, text in CREDENTIALS["stringData"].items()
        },
    }
    again = sources.read([SECOND, encoded], UUID)
    assert again.provider.project.kubeconfig == TEXT
    assert again.provider.zones == ("z",)


def test_settings_override_the_configuration(configuration: Document) -> None:
    """Field by field; Secrets of other types are no concern."""
    other = {"kind": "Secret", "type": "Opaque", "metadata": {"name": "other"}}
    observed = sources.read([configuration, SECOND, other], UUID)
    project = observed.provider.project
    assert project.network_policy is model.NetworkPolicy.NONE
    assert project.kubeconfig == TEXT


def test_nothing_usable_is_one_problem() -> None:
    """Not a list of every field of a document that does not exist."""
    lines = problems()
    assert lines[0].startswith("DVPClusterConfiguration: not set: must be a document")
    assert len(lines) == 1


def test_the_cluster_uuid_is_required(configuration: Document) -> None:
    """Without it no object of the parent has an owner."""
    for uuid in ("", "no/label"):
        (line,) = problems(configuration, uuid=uuid)
        assert line.startswith("--cluster-uuid: ")
        assert "must be the UUID of the cluster" in line


def test_the_second_generation_names_what_is_missing() -> None:
    """Both parts, each with the document that would have it."""
    empty = module_config(2)
    assert problems(empty) == [
        "cloud-provider-dvp provider.parameters.namespace: not set: must be the"
        " namespace of the project in the parent",
        "kubeconfig of the parent: not set: must be a Secret of the type"
        " cloud-provider.deckhouse.io/credentials, or a DVPClusterConfiguration",
    ]


def test_two_forms_of_credentials(configuration: Document) -> None:
    """Which one counts is not guessed."""
    (line,) = problems(configuration, CREDENTIALS)
    assert line == (
        "Secret: must not be set together with DVPClusterConfiguration"
        " provider.kubeconfigDataBase64"
    )


def test_credentials_of_another_scheme() -> None:
    """Only a kubeconfig can be used; its content is never shown."""
    secret = {**CREDENTIALS, "stringData": {"authScheme": "token", "secret": "s3cr3t"}}
    lines = problems(SECOND, secret)
    assert lines[0] == (
        "Secret/d8-credentials data.authScheme: invalid value [redacted]: must be"
        " kubeconfig"
    )
    assert "data.secret: must be a kubeconfig in YAML" in lines[1]
    assert "s3cr3t" not in "".join(lines)


def test_all_documents_are_validated(configuration: Document) -> None:
    """A mistake in each is a problem of each, by the name of its document."""
    configuration["layout"] = "Simple"
    lines = problems(
        configuration,
        {**DISCOVERED, "zones": []},
        module_config(1, storageClass={"exclude": "x"}),
        {**CLASS, "spec": {"rootDisk": {}}},
        node_group("lost", classReference={"kind": "DVPInstanceClass", "name": "x"}),
        "text",
    )
    beginnings = [
        "document 6: invalid value: must be an object with a kind",
        "cloud-provider-dvp storageClass.exclude: invalid value",
        'DVPClusterConfiguration layout: unsupported value "Simple": must be one of',
        "DVPCloudDiscoveryData zones: invalid value: must be a list of at least 1",
        "DVPInstanceClass/worker rootDisk.image: not set",
        "DVPInstanceClass/worker rootDisk.size: not set",
        "DVPInstanceClass/worker virtualMachine: not set",
        "NodeGroup/lost spec.cloudInstances.classReference.name: DVPInstanceClass",
    ]
    assert len(lines) == len(beginnings)
    for line, beginning in zip(lines, beginnings, strict=True):
        assert line.startswith(beginning), line


def test_machines_require_a_prefix(configuration: Document) -> None:
    """Names of VMs begin with it."""
    assert problems(configuration, CLASS, node_group("worker")) == [
        "ClusterConfiguration cloud.prefix: not set: must be a value, which NodeGroups"
        " require"
    ]


def test_excludes_and_collisions_are_reported(configuration: Document) -> None:
    """An invalid expression, and two classes of the parent with one name here."""
    excluded = module_config(1, storageClass={"exclude": ["("]})
    (line,) = problems(configuration, DISCOVERED, excluded)
    assert 'storageClass.exclude[0]: invalid value "("' in line
    twice = [{"name": name, "isEnabled": True} for name in ("SSD", "ssd")]
    lines = problems(configuration, {**DISCOVERED, "storageClasses": twice})
    assert [line.split(":")[0] for line in lines] == [
        "DVPCloudDiscoveryData volume type"
    ] * 2
