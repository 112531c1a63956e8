"""The core manager of Cluster API beside a lab's control plane, with its webhooks.

It runs as its own ServiceAccount with the roles of its release. The control plane has
to be up. Rules: `up` may be repeated and leaves alone a manager that runs; after `down`
its objects and webhook configurations remain, as in a cluster whose manager is stopped.
"""

import datetime
import json
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import errors, places
from lib.lab.capi import core_manifests, core_program
from lib.lab.kube import admin_api, cluster, control_plane, kube_files, pki
from lib.lab.run import ports, processes, progress

NAME = core_program.NAME
WEBHOOKS = "webhooks"
HEALTH = "health"
PORTS = {WEBHOOKS: 40, HEALTH: 41}
"""Distances from the first port of the lab: after those of a lab and its parent."""

_APPLY_S = 60.0
_DEFINITIONS = resources.DEFINITIONS.path()
_KINDS = {
    kind.kind: kind
    for kind in (
        resources.NAMESPACES,
        resources.SERVICE_ACCOUNTS,
        resources.CLUSTER_ROLES,
        resources.CLUSTER_ROLE_BINDINGS,
        resources.ROLES,
        resources.ROLE_BINDINGS,
        resources.DEFINITIONS,
        resources.VALIDATING_WEBHOOKS,
        Resource(
            resources.VALIDATING_WEBHOOKS.group,
            "v1",
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            False,
        ),
    )
}
_CERTIFICATE = "capi-webhook"
_POD = {
    "POD_NAMESPACE": core_manifests.NAMESPACE,
    "POD_NAME": "lab",
    "POD_UID": "00000000-0000-0000-0000-000000000000",
}
"""The manager records its Events and Leases with it."""


def port(where: places.Places, name: str) -> int:
    """Return a port of the manager. name: of `PORTS`."""
    return where.port_base + PORTS[name]


def up(
    where: places.Places, shown: progress.Progress, words: Sequence[str] = ()
) -> None:
    """Install the definitions and start the manager; return when its webhooks serve.

    words: more arguments of the manager.

    Raises:
        LabError: it is not built, a port is taken, the API server refused a manifest,
            or it did not start.
    """
    program, config = core_program.path(where), core_program.config(where)
    with shown.step("Start the core of Cluster API") as step:
        _require_ports(where)
        authority = _certify(where)
        url = f"https://{ports.LOOPBACK}:{port(where, WEBHOOKS)}"
        step.note("definitions")
        defined = core_manifests.definitions(
            _documents((config / "crd/bases").glob("*.yaml")), url, authority
        )
        access = core_manifests.access(_documents((config / "rbac").glob("*.yaml")))
        _apply(where, [*access, *defined])
        _wait_defined(where, {each["metadata"]["name"] for each in defined})
        step.note("manager")
        command = arguments(where, program, _kubeconfig(where))
        processes.start(where, NAME, [*command, *words], _POD)
        processes.wait_for(where, NAME, lambda: serves(where))
        manifests = _documents([config / "webhook/manifests.yaml"])
        _apply(where, core_manifests.webhooks(manifests, url, authority))


def down(where: places.Places) -> None:
    """Stop the manager; fine when it does not run."""
    processes.stop(where, [NAME])


def serves(where: places.Places) -> bool:
    """Report whether the manager is ready: its caches and its webhooks."""
    return admin_api.serves(port(where, HEALTH), "/readyz")


def arguments(
    where: places.Places, program: pathlib.Path, kubeconfig: pathlib.Path
) -> Sequence[str]:
    """Return the command of the manager.

    Without leader election, as the other programs of a lab: there is one of each.
    """
    return (
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--webhook-port={port(where, WEBHOOKS)}",
        f"--webhook-cert-dir={kube_files.certificates(where)}",
        f"--webhook-cert-name={_CERTIFICATE}.crt",
        f"--webhook-key-name={_CERTIFICATE}.key",
        f"--health-addr={ports.LOOPBACK}:{port(where, HEALTH)}",
        # It would listen on all addresses.
        "--diagnostics-address=0",
    )


def _require_ports(where: places.Places) -> None:
    """Raise LabError if another program uses a port that the manager needs."""
    if processes.find(where, NAME) is not None:
        return
    taken = [
        f"port {port(where, name)}, meant for {name} of {NAME}, is held by"
        f" {ports.holder(port(where, name))}"
        for name in PORTS
        if not ports.free(port(where, name))
    ]
    if taken:
        raise errors.LabError("; ".join(taken))


def _certify(where: places.Places) -> bytes:
    """Issue the certificate of the webhooks; return that of its authority."""
    subject = pki.Subject(_CERTIFICATE, names=(ports.LOOPBACK,))
    now = datetime.datetime.now(datetime.UTC)
    kube_files.issued(where, _CERTIFICATE, subject, now)
    return (kube_files.certificates(where) / "ca.crt").read_bytes()


def _documents(files: Iterable[pathlib.Path]) -> Sequence[Mapping[str, Any]]:
    return [
        document
        for file in sorted(files)
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if document is not None
    ]


def _apply(where: places.Places, documents: Iterable[Mapping[str, Any]]) -> None:
    """Make the cluster hold objects, by server-side apply.

    Raises:
        LabError: the API server refused one, or did not answer.
    """
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    for document in documents:
        kind, meta = _KINDS[document["kind"]], document["metadata"]
        try:
            api.patch(
                kind,
                meta["name"],
                json.dumps(document).encode(),
                meta.get("namespace"),
                content_type=client.APPLY_PATCH,
                timeout_s=_APPLY_S,
                query={"fieldManager": "mooring-lab", "force": "true"},
            )
        except kube_errors.KubeError as error:
            raise errors.LabError(
                f"cannot apply {kind.kind} {meta['name']} of {NAME}: {error}"
            ) from error


def _wait_defined(where: places.Places, names: Collection[str]) -> None:
    """Wait until definitions are served, and the manager's role has its rules."""
    role = resources.CLUSTER_ROLES.path(None, core_manifests.ROLE)

    def is_ready() -> bool:
        listed = json.loads(admin_api.ask(where, "GET", _DEFINITIONS)[1] or b"{}")
        served = {
            item["metadata"]["name"]
            for item in listed.get("items", ())
            for row in item.get("status", {}).get("conditions") or ()
            if (row["type"], row["status"]) == ("Established", "True")
        }
        rules = json.loads(admin_api.ask(where, "GET", role)[1] or b"{}").get("rules")
        return bool(rules) and served.issuperset(names)

    processes.wait_for(where, "kube-apiserver", is_ready)


def _kubeconfig(where: places.Places) -> pathlib.Path:
    """Write a kubeconfig of the manager's ServiceAccount."""
    admin = control_plane.admin_kubeconfig(where)
    target = kube_files.kubeconfig(where, core_manifests.ACCOUNT)
    account = (core_manifests.NAMESPACE, core_manifests.ACCOUNT)
    cluster.service_account_kubeconfig(cluster.connect(admin), admin, account, target)
    return target
