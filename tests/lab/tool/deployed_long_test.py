"""The packaged tool, an administrator's kubeconfig, and what the cluster has.

cloud.conf is in the Secret of the chart's Deployment, with an application credential.
"""

import base64
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
import yaml

from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.kube import cluster, control_plane
from lib.lab.run import waiting
from mooring.commands import outputs, schemas
from tests.harness.services import balancing, services

SNAPSHOT = pathlib.Path("charts/openstack-ccm/snapshots/usual.yaml")
NAMESPACE, SECRET = "kube-system", "cloud-config"
READ_ONLY = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tool-reader}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tool-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tool-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""
USER_KEYS = ("username", "password", "tenant-name", "domain-id")


@dataclasses.dataclass(frozen=True)
class Ground:
    """A Service that is served, and the Deployment whose Secret has cloud.conf."""

    room: balancing.Room
    kubeconfig: pathlib.Path
    home: pathlib.Path
    conf: pathlib.Path
    credential: tuple[str, str]

    @property
    def api(self) -> client.Api:
        return self.room.api

    def run(
        self, *words: str, program: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run the packaged tool with an empty home and folder for temporary files."""
        where = self.room.where
        tool = program or pexes.command(pexes.beside(pexes.TOOL))
        env = {
            **os.environ,
            **pexes.environment(where),
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "COLUMNS": "200",
        }
        done = subprocess.run(
            [*tool, *words],
            env=env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        print(*words, f"-> {done.returncode}", done.stdout[:600], done.stderr[-600:])
        assert "Traceback" not in done.stderr
        for secret in self.credential:
            assert secret not in done.stdout + done.stderr
        return done

    def document(self, *words: str, code: int = 0) -> Any:
        done = self.run(*words, "-o", "json")
        assert done.returncode == code
        return json.loads(done.stdout)


def deployment() -> dict[str, Any]:
    """Return the Deployment as helm renders it."""
    rendered = yaml.safe_load_all(SNAPSHOT.read_text())
    (rendered_object,) = (item for item in rendered if item["kind"] == "Deployment")
    return dict(rendered_object)


def secret(conf: str, key: str = "cloud-config") -> bytes:
    data = {key: base64.b64encode(conf.encode()).decode()}
    about = {"name": SECRET, "namespace": NAMESPACE}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}
    return json.dumps(document).encode()


def with_credential(conf: str, credential: tuple[str, str]) -> str:
    """Replace the user of a cloud.conf by an application credential."""
    lines = [line for line in conf.splitlines() if line.split(" ")[0] not in USER_KEYS]
    own = [
        f'application-credential-id = "{credential[0]}"',
        f'application-credential-secret = "{credential[1]}"',
    ]
    at = lines.index("[Global]") + 1
    return "\n".join([*lines[:at], *own, *lines[at:], ""])


@pytest.fixture(scope="module")
def ground(
    open_room: balancing.Open, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    room = open_room("deployed", 1)
    identity: Any = room.mine.connection.identity
    user = room.mine.connection.current_user_id
    created = identity.create_application_credential(user, "mooring-tool")
    credential = (str(created.id), str(created.secret))
    room.add_nodes(["node-01"])
    replica = room.replica(1)
    replica.start()
    room.services.make("web")
    waiting.until("address", lambda: services.addresses(room.services.get("web")))
    replica.stop()
    conf = balancing.conf(room.entrance, room.where, room.account)
    home = tmp_path_factory.mktemp("home")
    file = tmp_path_factory.mktemp("conf") / "cloud.conf"
    file.write_text(with_credential(conf, credential))
    admin = control_plane.admin_kubeconfig(room.where)
    new_ground = Ground(room, admin, home, file, credential)
    api = room.api
    api.create(resources.SECRETS, secret(file.read_text()), NAMESPACE, timeout_s=30)
    body = json.dumps(deployment()).encode()
    api.create(resources.DEPLOYMENTS, body, NAMESPACE, timeout_s=30)
    try:
        yield new_ground
    finally:
        api.delete(resources.DEPLOYMENTS, "openstack-ccm", NAMESPACE, timeout_s=30)
        api.delete(resources.SECRETS, SECRET, NAMESPACE, timeout_s=30)
        identity.delete_application_credential(user, created.id)


SERVICE = ("--cluster-name=mooring-lab",)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "mooring plan nodes": ("plan", "nodes"),
    "mooring plan services": ("plan", "services", *SERVICE),
    "mooring doctor": ("doctor",),
    "mooring orphans": ("orphans", *SERVICE),
}


def stable(document: object) -> object:
    """Return a document without numbers that change between two runs."""
    return json.loads(re.sub(r"\d+", "0", json.dumps(document)))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_secret_has_the_same_result_as_the_file(
    ground: Ground, command: str
) -> None:
    """From the Deployment, and by name; no file is written anywhere in its home."""
    words = COMMANDS[command]
    code = ground.run(*words, f"--cloud-config={ground.conf}").returncode
    local = ground.document(*words, f"--cloud-config={ground.conf}", code=code)
    jsonschema.validate(local, schemas.of_command(command))
    by_name = f"--cloud-config-secret={NAMESPACE}/{SECRET}"
    for options in ((), (by_name,), (f"{by_name}/cloud-config",)):
        deployed = ground.document(*words, *options, code=code)
        titles = json.dumps(stable(deployed)).replace(
            f"Secret {NAMESPACE}/{SECRET}, key cloud-config", str(ground.conf)
        )
        assert json.loads(titles) == stable(local)
    assert [path for path in ground.home.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("output", outputs.FORMATS)
def test_each_format_of_each_command(ground: Ground, output: str) -> None:
    for words in (*COMMANDS.values(), ("get", "services"), ("version", "--cluster")):
        done = ground.run(*words, "-o", output)
        if output in (outputs.JSON, outputs.YAML):
            assert yaml.safe_load(done.stdout)
        elif output == outputs.NAME:
            assert all("/" in line for line in done.stdout.splitlines())
        else:
            assert done.stdout


def test_get_shows_the_service_the_node_and_a_volume(ground: Ground) -> None:
    """With the calls that the documentation names."""
    name = f"{ground.room.services.namespace}/web"
    served = ground.room.services.get("web")
    assert served is not None
    document = ground.document("get", "services")
    jsonschema.validate(document, schemas.of_command("mooring get services"))
    (row,) = (row for row in document["services"] if row["service"] == name)
    assert row["state"] == "Ready"
    assert row["address"] == ", ".join(services.addresses(served))
    assert row["load_balancer"] == services.balancer_id(served)
    assert row["problem"] == ""
    nodes = ground.document("get", "nodes")
    jsonschema.validate(nodes, schemas.of_command("mooring get nodes"))
    (node,) = (row for row in nodes["nodes"] if row["node"] == "node-01")
    assert node["address"] == ground.room.nodes["node-01"]
    volumes = ground.document("get", "volumes")
    jsonschema.validate(volumes, schemas.of_command("mooring get volumes"))
    versions = ground.document("version", "--cluster")
    jsonschema.validate(versions, schemas.of_command("mooring version"))
    components = {row["component"] for row in versions["components"]}
    assert components >= {"mooring", "openstack-ccm"}
    log = (ground.room.where.log / "audit.log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    asked = {
        (line["verb"], line["objectRef"]["resource"])
        for line in lines
        if line.get("userAgent") == "mooring-get"
    }
    assert asked == {
        ("list", name)
        for name in (
            *("services", "nodes", "events", "persistentvolumes"),
            *("persistentvolumeclaims", "volumeattachments"),
        )
    }


def test_detailed_exit_codes(ground: Ground) -> None:
    """0 without changes, 2 with changes, 1 for errors; 0 without the flag."""
    services_of = ("plan", "services", *SERVICE, "web")
    flag = "--detailed-exitcode"
    assert ground.run(*services_of, flag).returncode == 0
    about = {"loadbalancer.openstack.org/connection-limit": "7"}
    ground.room.services.change("web", about)
    assert ground.run(*services_of, flag).returncode == 2
    assert ground.run(*services_of).returncode == 0
    assert ground.run("plan", "services", "absent", flag).returncode == 1
    assert ground.run(*services_of, flag, "--cluster").returncode == 1
    invalid = {"loadbalancer.openstack.org/class": "gold"}
    ground.room.services.change("web", invalid)
    assert ground.run(*services_of, flag).returncode == 1
    undone = dict.fromkeys((*about, *invalid))
    ground.room.services.change("web", undone)
    assert ground.run(*services_of, flag).returncode == 0


def test_each_failure_to_read_the_secret(
    ground: Ground, where: places.Places, tmp_path: pathlib.Path
) -> None:
    api = ground.api
    cluster.create_all(api, READ_ONLY)
    reader = tmp_path / "reader"
    account = ("default", "reader")
    cluster.service_account_kubeconfig(api, ground.kubeconfig, account, reader)
    other = {**deployment(), "metadata": {"name": "second", "labels": {}}}
    other["metadata"]["labels"] = deployment()["metadata"]["labels"]
    rows: dict[str, tuple[tuple[str, ...], str]] = {
        "forbidden": ((f"--kubeconfig={reader}",), "permission denied"),
        "Secret missing": (
            ("--cloud-config-secret=default/absent",),
            "Secret default/absent: not found",
        ),
        "key missing": (
            (f"--cloud-config-secret={NAMESPACE}/{SECRET}/absent",),
            "key absent not found: the Secret has cloud-config",
        ),
    }
    for row, (options, text) in rows.items():
        done = ground.run("plan", "nodes", *options)
        print(row, done.stderr)
        assert done.returncode == 1
        assert text in done.stderr
    body = json.dumps(other).encode()
    api.create(resources.DEPLOYMENTS, body, "default", timeout_s=30)
    try:
        done = ground.run("plan", "nodes")
        assert (
            "several Deployments have the label app.kubernetes.io/name=openstack-ccm"
            in done.stderr
        )
    finally:
        api.delete(resources.DEPLOYMENTS, "second", "default", timeout_s=30)
    api.delete(resources.DEPLOYMENTS, "openstack-ccm", NAMESPACE, timeout_s=30)
    try:
        done = ground.run("plan", "nodes")
        assert (
            "no Deployment has the label app.kubernetes.io/name=openstack-ccm"
            in done.stderr
        )
        failed = ground.run("doctor")
        assert failed.returncode == 1
        assert "no Deployment has the label" in failed.stdout
    finally:
        body = json.dumps(deployment()).encode()
        api.create(resources.DEPLOYMENTS, body, NAMESPACE, timeout_s=30)


def lab_secrets(ground: Ground) -> set[str]:
    """Return passwords, tokens, keys and credentials of the lab, as long texts."""
    secrets = set(ground.credential)
    for file in (ground.kubeconfig, ground.room.kubeconfig):
        for user in yaml.safe_load(file.read_text())["users"]:
            secrets |= {
                text
                for key, text in user["user"].items()
                if key in ("token", "client-key-data", "password")
            }
    for file in ground.room.where.state.rglob("*"):
        if file.is_file() and file.suffix == ".key":
            secrets |= {
                line for line in file.read_text().splitlines() if "-----" not in line
            }
    return {secret for secret in secrets if len(secret) >= 16}


def test_a_bundle_has_every_part_and_no_secret(
    ground: Ground, tmp_path: pathlib.Path
) -> None:
    """Also when an Event repeats the secret of the application credential."""
    secret_text = ground.credential[1]
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "tool-leak", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "node-01"},
        "type": "Warning",
        "reason": "Leak",
        "message": f"authentication with {secret_text} failed",
    }
    body = json.dumps(event).encode()
    ground.api.create(resources.EVENTS, body, "default", timeout_s=30)
    file = tmp_path / "bundle.tar.gz"
    ground.run("doctor", f"--bundle={file}")
    with tarfile.open(file) as tar:
        contents = {
            member.name.partition("/")[2]: reader.read().decode()
            for member in tar
            if (reader := tar.extractfile(member)) is not None
        }
    for name, text in contents.items():
        print(f"{name:24} {len(text):7} {text[:60]!r}")
    logs = {name for name in contents if name.startswith("logs/")}
    assert set(contents) - logs == {
        *("versions.json", "configuration.txt", "events.json", "doctor.json"),
        *("plan-nodes.json", "plan-services.json"),
    }
    # The lab has no kubelet here: no Pods, or Pods without a line of log.
    assert logs
    reports = ("no Pods with", "not available: ")
    for name in logs:
        assert not contents[name] or contents[name].startswith(reports)
    for name in ("doctor", "plan-nodes", "plan-services", "versions", "events"):
        assert json.loads(contents[f"{name}.json"])
    assert "auth-url" in contents["configuration.txt"]
    assert "authentication with [redacted] failed" in contents["events.json"]
    secrets = lab_secrets(ground)
    print(f"{len(secrets)} secrets")
    assert len(secrets) > 5
    for text in contents.values():
        assert [secret for secret in secrets if secret in text] == []
        assert "PRIVATE KEY" not in text
        assert "gAAAA" not in text, "a token of Keystone"
    again = ground.run("doctor", f"--bundle={file}")
    assert again.returncode == 1
    assert "must not exist" in again.stderr


def test_kubectl_runs_it_as_a_plugin(ground: Ground, tmp_path: pathlib.Path) -> None:
    """A link of this name in PATH; help shows the name."""
    plugin = tmp_path / "kubectl-mooring"
    python, pex = pexes.command(pexes.beside(pexes.TOOL))
    plugin.write_text(f'#!/bin/sh\nexec {python} {tmp_path}/pex/kubectl-mooring "$@"\n')
    plugin.chmod(0o755)
    (tmp_path / "pex").mkdir()
    os.link(pex, tmp_path / "pex" / "kubectl-mooring")
    kubectl = str(programs.path(ground.room.where, "kubectl"))
    with_path = ("env", f"PATH={tmp_path}:{os.environ['PATH']}", kubectl)
    shown = ground.run("mooring", "get", "--help", program=with_path)
    assert shown.stdout.startswith("Usage: kubectl mooring get ")
    listed = ground.run("mooring", "get", "nodes", "-o", "name", program=with_path)
    assert "node/node-01" in listed.stdout.splitlines()
