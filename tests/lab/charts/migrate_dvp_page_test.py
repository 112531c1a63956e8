"""docs/migrate-dvp.md, line by line, on the objects of the reference, and back.

The parent is the simulated one, with a VM of the cluster. There is no kubelet: pods are
created, and nothing runs in them.
"""

import pathlib
from collections.abc import Mapping

import pytest
import yaml

from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane
from lib.lab.kube.kube_objects import Objects
from lib.lab.run import waiting
from tests.harness import testing
from tests.harness.docs import user_shell
from tests.harness.dvp import dvp_parent, parent_fixtures
from tests.lab.charts import reference_of_dvp

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

PAGE = "docs/migrate-dvp.md"
CHART = pathlib.Path("charts/cloud-provider-dvp")
NAMESPACES = (reference_of_dvp.HOME, "d8-system")
DECKHOUSE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: deckhouse, namespace: d8-system}
spec:
  selector: {matchLabels: {app: deckhouse}}
  template:
    metadata: {labels: {app: deckhouse}}
    spec: {containers: [{name: deckhouse, image: registry.example/deckhouse:v1}]}
"""
KINDS = (resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.SECRETS)


def secrets(project: Project) -> str:
    """Return the manifests of the module's Secrets, for a project of the parent."""
    content = {
        "kubernetesConfigBase64": project.kubeconfig.read_text(),
        "namespace": project.namespace,
        "clusterUUID": dvp_parent.CLUSTER,
    }
    labels = {"heritage": "deckhouse", "module": "cloud-provider-dvp"}
    return yaml.safe_dump_all(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": reference_of_dvp.HOME,
                "labels": labels,
            },
            "stringData": content,
        }
        for name in ("dvp-credentials", "dvp-credentials-capdvp")
    )


@pytest.fixture()
def reader(
    where: places.Places,
    api: client.Api,
    parent: dvp_parent.DvpParent,
    project: Project,
    tmp_path: pathlib.Path,
) -> user_shell.UserShell:
    """Have the objects of the reference, whose workloads are not stopped yet."""
    programs.build(where, [helm.GROUP], testing.shown())
    parent.machines(project, ["node-1"])
    for name in NAMESPACES:
        Objects(api, "").make(resources.NAMESPACES, name)
    shell = user_shell.UserShell(tmp_path, user_shell.environment(tmp_path, where))
    # The reference has the kinds of machines already.
    shell.run(f"helm show crds {CHART} | kubectl apply --server-side -f -")
    running = reference_of_dvp.workloads(is_stopped=False)
    text = "---".join((secrets(project), DECKHOUSE, running))
    control_plane.apply_manifests(where, text)
    return shell


def existing(api: client.Api) -> Mapping[tuple[str, str, str], str]:
    """Return the UIDs of what the reference and Deckhouse have, by their names."""
    return {
        (kind.kind, namespace, item["metadata"]["name"]): item["metadata"]["uid"]
        for kind in KINDS
        for namespace in NAMESPACES
        for item in Objects(api, namespace).all(kind)
    }


def replicas(api: client.Api) -> Mapping[str, int]:
    return {
        item["metadata"]["name"]: item["spec"]["replicas"]
        for namespace in NAMESPACES
        for item in Objects(api, namespace).all(resources.DEPLOYMENTS)
    }


def test_the_page_is_followed_there_and_back(
    reader: user_shell.UserShell, api: client.Api
) -> None:
    """Nothing of the reference is deleted; after the rollback all is as before."""
    before, running = existing(api), replicas(api)
    steps = reader.follow(PAGE, "1. Write the values")
    # Rows of the chart fail until it is installed.
    preview = reader.follow(PAGE, "2. See what would change", allowed=(0, 1))
    assert "cannot be reached" not in preview
    for command in user_shell.printed(steps, "Stop the reference"):
        reader.run(command)
    assert (reader.folder / "dvp-secrets.yaml").read_text().count("kind: Secret") == 2
    assert set(replicas(api).values()) == {0}
    waiting.until("pods of the DaemonSet are gone", lambda: is_stopped(api))
    reader.follow(PAGE, "4. Install the chart")
    installed = existing(api)
    assert before.items() <= installed.items()
    assert installed.keys() - before.keys() >= {
        ("Deployment", reference_of_dvp.HOME, "dvp-ccm"),
        ("DaemonSet", reference_of_dvp.HOME, "csi-node-dvp"),
    }
    reader.follow(PAGE, "Rollback")
    for command in user_shell.printed(steps, "Roll back"):
        reader.run(command)
    assert replicas(api) == running
    assert existing(api) == before


def is_stopped(api: client.Api) -> bool:
    """Report whether no DaemonSet of the reference is scheduled."""
    items = Objects(api, reference_of_dvp.HOME).all(resources.DAEMON_SETS)
    return not any(x["status"].get("desiredNumberScheduled") for x in items)
