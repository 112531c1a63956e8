"""Runs openstack-ccm, or another component, as a lab's cloud controller manager."""

import http.client
import json
import os
import pathlib
from collections.abc import Mapping, Sequence

import yaml

from lib.kube import client, resources
from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.kube import cluster
from lib.lab.run import processes, tls

NAME = "openstack-ccm"
ACCOUNT = ("kube-system", NAME)
PORT = "cloud-controller-manager"
QUICK = ("--node-status-update-frequency=5s",)
LAB = (
    *QUICK,
    # A machine that compiles or runs tests answers later than the usual 15, 10 and 2 s.
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=45s",
    "--leader-elect-retry-period=4s",
)
"""So that a floating IP shows within seconds; five minutes by default."""
POD_CIDR = "10.244.0.0/16"
"""Of the Pods of a whole lab, in which each Node has a part."""
Right = tuple[str, str, str]
"""API group, resource with its subresource, verb."""
_READER = ("default", "metrics-reader")
_READER_MANIFEST = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: metrics-reader, namespace: default}]
"""


def manifest() -> str:
    """Return the RBAC manifest of the chart."""
    # Two rooms up from this file in a checkout, a sandbox and an unpacked PEX alike.
    root = pathlib.Path(__file__).parents[3]
    return (root / "charts/openstack-ccm/files/rbac.yaml").read_text()


def granted(*kinds: str) -> set[Right]:
    """Return what the chart's ClusterRole allows, or its roles of other kinds."""
    documents = list(yaml.safe_load_all(manifest()))
    return {
        (group, resource, verb)
        for role in documents
        if role["kind"] in (kinds or ("ClusterRole",))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def reader_token(api: client.Api) -> str:
    """Return the token of a user with permission to read /metrics, and nothing else.

    Raises:
        KubeError: the API server did not answer, or refused.
    """
    cluster.create_all(api, _READER_MANIFEST)
    path = resources.SERVICE_ACCOUNTS.path(*_READER, "token")
    answer = api.request("POST", path, body=b"{}", timeout_s=cluster.TIMEOUT_S)
    return str(json.loads(answer)["status"]["token"])


def arguments(
    where: places.Places,
    kubeconfig: pathlib.Path,
    cloud_conf: pathlib.Path,
    extra: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the reference's own command line."""
    return (
        "--cloud-provider=openstack",
        f"--cloud-config={cloud_conf}",
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={where.port(PORT)}",
        "--cluster-name=mooring-lab",
        "--leader-elect=true",
        "--v=2",
        *extra,
    )


def start(
    where: places.Places,
    pex: pathlib.Path,
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
    component: str = NAME,
) -> None:
    """Start it and wait until it serves; one that runs from an older PEX is replaced.

    words: its command line. env: added to the caller's own environment.

    Raises:
        LabError: it ended, or did not serve in time.
    """
    replace_outdated(where, component, pex)
    launch(where, pex, words, env, component)
    processes.wait_for(where, component, lambda: serves(where))


def launch(
    where: places.Places,
    pex: pathlib.Path,
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
    component: str = NAME,
) -> None:
    """Start it unless it runs, and don't wait for it. words, env: see `start`."""
    whole = {**pexes.environment(where), **(env or {})}
    command = [*pexes.command(pex), "--logging-format=json", *words]
    processes.start(where, component, command, whole)


def replace_outdated(where: places.Places, name: str, file: pathlib.Path) -> None:
    """Stop the program `name` if it was started before `file` was written."""
    process = processes.find(where, name)
    if process is not None and os.stat(file).st_mtime > process.create_time():
        processes.stop(where, [name])


def serves(where: places.Places) -> bool:
    """Report whether it answers at all."""
    try:
        return ask(where, "/healthz")[0] == http.client.OK
    except (OSError, http.client.HTTPException):
        return False


def metrics(where: places.Places, token: str) -> str:
    """Return the text of /metrics. token: of a user with permission.

    Raises:
        LabError: it refused. OSError, HTTPException: there was no answer.
    """
    status, text = ask(where, "/metrics", token, timeout_s=10)
    if status != http.client.OK:
        raise errors.LabError(f"/metrics answered {status}: {text}")
    return text


def ask(
    where: places.Places, path: str, token: str = "", timeout_s: float = 5
) -> tuple[int, str]:
    """Return status code and body of an answer; its certificate is its own.

    token: of a ServiceAccount, for the paths that are not open.

    Raises:
        OSError, HTTPException: there was none.
    """
    context = tls.unverified()
    connection = http.client.HTTPSConnection(
        "127.0.0.1", where.port(PORT), timeout=timeout_s, context=context
    )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
