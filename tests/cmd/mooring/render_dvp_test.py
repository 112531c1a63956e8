"""`mooring render dvp`, run as its users run it."""

import base64
import json
import pathlib
from typing import Any

import pytest
import yaml

from lib.discovery.dvp import parent_rbac
from mooring.commands import parent_account
from tests.harness.daemons import tool

UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: parent
clusters: [{name: parent, cluster: {server: "https://parent.example:6443"}}]
users: [{name: child, user: {token: s3cr3t}}]
contexts: [{name: parent, context: {cluster: parent, user: child}}]
"""
CONFIGURATION = f"""
apiVersion: deckhouse.io/v1
kind: DVPClusterConfiguration
layout: Standard
sshPublicKey: >-
  ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtpdmVraXZla2l2ZWtpdmVraXZla2l2ZWtpdmVraXZl
masterNodeGroup:
  replicas: 3
  instanceClass:
    virtualMachine: {{cpu: {{cores: 4}}, memory: {{size: 8Gi}}}}
    rootDisk: {{size: 50Gi, image: {{kind: ClusterVirtualImage, name: ubuntu}}}}
    etcdDisk: {{size: 15Gi, storageClass: fast}}
provider:
  kubeconfigDataBase64: {base64.b64encode(KUBECONFIG.encode()).decode()}
  namespace: fleet
---
kind: ClusterConfiguration
cloud: {{prefix: sea}}
---
kind: InitConfiguration
"""
DISCOVERED = {
    "apiVersion": "deckhouse.io/v1",
    "kind": "DVPCloudDiscoveryData",
    "zones": ["a"],
    "storageClasses": [{"name": "fast", "isEnabled": True}],
}


def render(*words: object) -> tool.Said:
    return tool.mooring("render", "dvp", *map(str, words))


@pytest.fixture()
def configuration(tmp_path: pathlib.Path) -> pathlib.Path:
    file = tmp_path / "configuration.yaml"
    file.write_text(CONFIGURATION)
    return file


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def of(file: pathlib.Path, *more: object) -> tool.Said:
    return render("--cluster-configuration", file, "--cluster-uuid", UUID, *more)


def test_everything_is_printed(configuration: pathlib.Path) -> None:
    """Secrets, templates, the parent's policy and values; remarks go elsewhere."""
    result = of(configuration)
    assert result.returncode == 0, result.stderr
    kinds = [document.get("kind", "values") for document in documents(result.stdout)]
    assert kinds == ["Secret"] * 6 + ["DeckhouseCluster", "NetworkPolicy", "values"]
    assert "InitConfiguration: ignored" in result.stderr
    assert "Without DVPCloudDiscoveryData" in result.stderr
    assert "s3cr3t" not in result.stderr


def test_parts_are_printed_alone(
    configuration: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Each part by its name; together they are the whole, with discovery data, too."""
    discovered = tmp_path / "discovery.json"
    discovered.write_text(json.dumps(DISCOVERED))
    words = ("--discovery-data", discovered)
    whole = of(configuration, *words)
    assert "Without DVPCloudDiscoveryData" not in whole.stderr
    parts = [
        of(configuration, *words, "--only", part).stdout
        for part in ("secrets", "templates", "parent", "values")
    ]
    assert "".join(parts) == whole.stdout
    names = of(configuration, *words, "-o", "name").stdout.splitlines()
    assert "secret/kube-system/d8-provider-cluster-configuration" in names


def test_every_problem_is_reported_and_no_secret(tmp_path: pathlib.Path) -> None:
    """Exit code 1, one line each, nothing printed, no traceback."""
    file = tmp_path / "bad.yaml"
    file.write_text(
        CONFIGURATION.replace("namespace: fleet", "namespace: Fleet")
        .replace("replicas: 3", "replicas: none")
        .replace("layout: Standard", "layout: Simple")
    )
    result = render("--cluster-configuration", file)
    assert (result.returncode, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "4 problems:",
        "DVPClusterConfiguration layout",
        "DVPClusterConfiguration masterNodeGroup.replicas",
        "DVPClusterConfiguration provider.namespace",
        "--cluster-uuid",
    ]
    assert "s3cr3t" not in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unsafe_change_prints_nothing(
    configuration: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Compared with the configuration in use, it is named with its effect."""
    assert of(configuration, "--previous", configuration).returncode == 0
    before = tmp_path / "before.yaml"
    before.write_text(CONFIGURATION.replace("fleet", "other"))
    result = of(configuration, "--previous", before)
    assert (result.returncode, result.stdout) == (1, "")
    assert (
        "unsafe: provider.namespace: from 'other' to 'fleet': all VMs and disks"
        in result.stderr
    )


def test_permissions_in_the_parent() -> None:
    """All components, or one; one account of their own, or a shared one."""
    result = render("--parent-rbac", "--namespace", "fleet")
    assert result.returncode == 0, result.stderr
    kinds = [document["kind"] for document in documents(result.stdout)]
    assert kinds.count("ServiceAccount") == kinds.count("Role") == 4
    words = ("--component", "dvp-ccm", "--account", "north", "-o", "name")
    result = render("--parent-rbac", "--namespace", "fleet", *words)
    assert result.stdout.splitlines() == [
        "serviceaccount/fleet/north",
        "role/fleet/mooring-dvp-ccm",
        "rolebinding/fleet/north-dvp-ccm",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--parent-rbac",), "--namespace: not set: must be the namespace of the proj"),
        (
            ("--parent-rbac", "--namespace", "A"),
            '--namespace: invalid value "A": must be the namespace',
        ),
        (
            ("--parent-rbac", "--namespace", "a", "--account", "A b"),
            '--account: invalid value "A b": must be a DNS label',
        ),
        (
            ("--parent-kubeconfig", "--namespace", "a"),
            "--component: not set: must be one component, or --account",
        ),
        (
            (
                "--parent-kubeconfig",
                *("--namespace", "a", "--account", "b", "--kubeconfig", "/absent"),
            ),
            "/absent",
        ),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], message: str) -> None:
    result = render(*words)
    print(result.stderr)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_one_of_three_is_required(configuration: pathlib.Path) -> None:
    """None, or two: the usage names all three."""
    for words in ((), ("--parent-rbac", "--parent-kubeconfig")):
        result = render(*words)
        assert result.returncode == 2
        text = " ".join(result.stderr.split())
        assert "exactly one of --cluster-configuration, --parent-rbac" in text
    assert of(configuration, "--parent-rbac").returncode == 2


def test_every_component_can_be_chosen() -> None:
    """Those with permissions in the parent, in the same order."""
    assert tuple(parent_rbac.COMPONENTS) == parent_account.COMPONENTS
