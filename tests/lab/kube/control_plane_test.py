"""One real control plane, from nothing to gone."""

import base64
import http.client
import json
import os
import pathlib
import socket
import ssl
from collections.abc import Iterator

import pytest
import yaml

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.kube import cluster, control_plane, first_objects
from lib.lab.run import offspring, ports, processes, progress

MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: cloud}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: cloud}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: node-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: cloud}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: node-reader}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
"""
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "boat"}}


@pytest.fixture()
def where(elsewhere: places.Places) -> Iterator[places.Places]:
    """An own control plane, with the programs built for everybody."""
    yield elsewhere
    control_plane.down(elsewhere)
    processes.stop(elsewhere, processes.names(elsewhere))


def ask(
    kubeconfig: pathlib.Path, method: str, path: str, body: object = None
) -> tuple[int, bytes]:
    """Send one request with the credentials of a kubeconfig."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trust = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    headers = {"Content-Type": "application/json"}
    if "token" in user:
        headers["Authorization"] = f"Bearer {user['token']}"
    else:
        folder = kubeconfig.parent / "pki"
        trust.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    address = cluster["server"].removeprefix("https://")
    connection = http.client.HTTPSConnection(address, timeout=10, context=trust)
    try:
        content = json.dumps(body) if body is not None else None
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def pids(where: places.Places) -> list[int | None]:
    return [program.pid for program in control_plane.status(where)]


def check_started(where: places.Places) -> None:
    """It serves, `up` is idempotent, and what was asked stands in the audit log."""
    assert [program.ready for program in control_plane.status(where)] == [True] * 3
    before = pids(where)
    control_plane.up(where, progress.Silent())
    assert pids(where) == before
    admin = control_plane.admin_kubeconfig(where)
    assert ask(admin, "GET", "/readyz") == (200, b"ok")
    assert ask(admin, "POST", "/api/v1/nodes", NODE)[0] == 201
    log = (where.log / "audit.log").read_text().splitlines()
    requests = {
        (entry["verb"], entry.get("requestURI")) for entry in map(json.loads, log)
    }
    assert ("create", "/api/v1/nodes") in requests


def check_first_objects(where: places.Places, were_kept: bool) -> None:
    """The API server creates its ClusterRoles only where no earlier lab kept them."""
    log = (where.log / "audit.log").read_text().splitlines()
    created = {
        entry["objectRef"]["name"]
        for entry in map(json.loads, log)
        if entry["user"]["username"] == "system:apiserver"
        and (entry["verb"], entry.get("objectRef", {}).get("resource"))
        == ("create", "clusterroles")
    }
    print(f"first objects kept before: {were_kept}; {len(created)} ClusterRoles made")
    assert ("cluster-admin" in created) == (not were_kept)
    assert first_objects.file_of(where).exists()
    admin = control_plane.admin_kubeconfig(where)
    status, _ = ask(admin, "GET", f"{CLUSTER_ROLES}/cluster-admin")
    assert status == 200


def check_rights(where: places.Places) -> None:
    """A ServiceAccount's kubeconfig may do what its manifest says, and no more."""
    control_plane.apply_manifests(where, MANIFEST)
    admin = control_plane.admin_kubeconfig(where)
    api, reader = cluster.connect(admin), where.state / "reader.kubeconfig"
    cluster.service_account_kubeconfig(api, admin, ("cloud", "reader"), reader)
    assert reader.stat().st_mode & 0o077 == 0
    assert ask(reader, "GET", "/api/v1/nodes/boat")[0] == 200
    assert ask(reader, "GET", "/api/v1/secrets")[0] == 403
    with pytest.raises(kube_errors.NotFound, match='"nobody" not found'):
        cluster.service_account_kubeconfig(api, admin, ("cloud", "nobody"), reader)


def check_taken_port(where: places.Places) -> None:
    """A foreign program on a port is named, and nothing is started beside it."""
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        foreign.bind((ports.LOOPBACK, where.port("apiserver")))
        foreign.listen()
        with pytest.raises(errors.LabError, match=rf"kube-api.*\(pid {os.getpid()}\)"):
            control_plane.up(where, progress.Silent())
    assert pids(where) == [None] * 3


def test_control_plane_lives_and_ends(where: places.Places) -> None:
    """It starts from nothing, keeps its data over a stop, and leaves no process."""
    were_kept = first_objects.file_of(where).exists()
    control_plane.up(where, progress.Silent())
    check_first_objects(where, were_kept)
    check_started(where)
    check_rights(where)
    ended = [
        process
        for name in processes.names(where)
        if (process := processes.find(where, name))
    ]
    control_plane.down(where)
    assert len(ended) == 3
    assert not any(offspring.alive(process) for process in ended)
    check_taken_port(where)
    control_plane.up(where, progress.Silent(), api_arguments=["--v=1"])
    admin = control_plane.admin_kubeconfig(where)
    assert ask(admin, "GET", "/api/v1/nodes/boat")[0] == 200
    control_plane.down(where)
    assert pids(where) == [None] * 3
