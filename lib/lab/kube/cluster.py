"""Requests of the lab to an API server, its own or an existing one."""

import base64
import json
import os
import pathlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import yaml

from lib.kube import client, kube_config, resources
from lib.kube import errors as kube_errors
from lib.lab import errors
from lib.lab.kube import pki
from lib.lab.status import table

TIMEOUT_S = 10.0
TOKEN_S = 30 * 24 * 3600

_KINDS = {
    kind.kind: kind
    for kind in (
        resources.SERVICE_ACCOUNTS,
        resources.CLUSTER_ROLES,
        resources.CLUSTER_ROLE_BINDINGS,
        resources.ROLES,
        resources.ROLE_BINDINGS,
    )
}


def connect(kubeconfig: pathlib.Path) -> client.Api:
    """Open a client with the rights that a kubeconfig gives.

    Raises:
        LabError: the file is missing or says nothing usable.
    """
    try:
        configuration = kube_config.load(str(kubeconfig), env=os.environ)
    except kube_errors.KubeError as error:
        raise errors.LabError(f"cannot use {kubeconfig}: {error}") from error
    return client.KubeClient(configuration, user_agent="mooring-lab")


def nodes(api: client.Api) -> tuple[table.NodeRow, ...]:
    """List the Nodes.

    Raises:
        KubeError: the API server did not answer, or refused.
    """
    page = api.list_page(resources.NODES, query={}, timeout_s=TIMEOUT_S)
    return tuple(table.node(document) for document in json.loads(page)["items"])


def delete_node(api: client.Api, name: str) -> None:
    """Delete a Node; fine when there is none."""
    try:
        api.delete(resources.NODES, name, timeout_s=TIMEOUT_S)
    except kube_errors.NotFound:
        return


def node_paths(names: Collection[str]) -> tuple[str, ...]:
    """Return the API paths of Nodes."""
    return tuple(resources.NODES.path(None, name) for name in names)


def create_all(api: client.Api, manifests: str) -> tuple[str, ...]:
    """Create what a YAML text holds; return the paths of what was not there before.

    What is there is left as it is: in an existing cluster it may have another owner.
    """
    return create_documents(api, yaml.safe_load_all(manifests), _KINDS)


def create_documents(
    api: client.Api,
    documents: Iterable[Mapping[str, Any]],
    kinds: Mapping[str, resources.Resource],
) -> tuple[str, ...]:
    """Create objects, as `create_all`. kinds: of the objects, by their names."""
    created = []
    for document in documents:
        kind = kinds[document["kind"]]
        meta = document["metadata"]
        body = json.dumps(document).encode()
        try:
            api.create(kind, body, meta.get("namespace"), timeout_s=TIMEOUT_S)
        except kube_errors.AlreadyExists:
            continue
        created.append(kind.path(meta.get("namespace"), meta["name"]))
    return tuple(created)


def delete_paths(api: client.Api, paths: tuple[str, ...]) -> None:
    """Delete what `create_all` made."""
    for path in paths:
        try:
            api.request("DELETE", path, timeout_s=TIMEOUT_S)
        except kube_errors.NotFound:
            continue


def service_account_kubeconfig(
    api: client.Api,
    kubeconfig: pathlib.Path,
    account: tuple[str, str],
    target: pathlib.Path,
) -> None:
    """Write a kubeconfig that is exactly an existing ServiceAccount.

    So a program meets the rights that its own manifests give it. kubeconfig: says where
    the cluster is. account: namespace and name.

    Raises:
        LabError: the kubeconfig can't be read. KubeError: no token was given.

    Source: Kubernetes authentication.k8s.io/v1 TokenRequest.
    """
    path = resources.SERVICE_ACCOUNTS.path(*account, "token")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_S},
    }
    answer = api.request(
        "POST", path, body=json.dumps(body).encode(), timeout_s=TIMEOUT_S
    )
    user = {"token": json.loads(answer)["status"]["token"]}
    context = {"cluster": "lab", "user": account[1], "namespace": account[0]}
    text = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": _cluster_of(kubeconfig)}],
            "users": [{"name": account[1], "user": user}],
            "contexts": [{"name": "lab", "context": context}],
        }
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    pki.write_secret(target, text.encode())


def _cluster_of(kubeconfig: pathlib.Path) -> Mapping[str, object]:
    """Return the cluster of the current context, with its certificates inside."""
    try:
        read = yaml.safe_load(kubeconfig.read_text())
        contexts = {row["name"]: row["context"] for row in read["contexts"]}
        clusters = {row["name"]: row["cluster"] for row in read["clusters"]}
        cluster = dict(clusters[contexts[read["current-context"]]["cluster"]])
        if file := cluster.pop("certificate-authority", None):
            content = (kubeconfig.parent / file).read_bytes()
            cluster["certificate-authority-data"] = base64.b64encode(content).decode()
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise errors.LabError(
            f"{kubeconfig} names no current context with a cluster ({error})"
        ) from error
    return cluster
