"""Runs osdpl-controller in a lab, under the ServiceAccount of its chart."""

import contextlib
import http.client
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.charts import helm
from lib.lab.kube import cluster, control_plane
from lib.lab.osdpl import chart_sources, deployment
from lib.lab.run import ports, processes, tls, waiting

NAME = "osdpl-controller"
WEBHOOK = "osdpl-webhook"
ACCOUNT = (deployment.NAMESPACE, NAME)
CHANGE = {"spec": {"openstack_version": "flamingo"}}
"""Of the OpenStackDeployment, which has a later version: there is no downgrade."""
_DENIED = "denied the request: "
_POLL_S = 1.0
_ASK_S = 5


def _root() -> pathlib.Path:
    # The same in a checkout, in a sandbox and in an unpacked PEX.
    return pathlib.Path(__file__).parents[3]


def chart_objects(where: places.Places, *sets: str) -> list[dict[str, Any]]:
    """Return all objects of the chart but its Deployment: the lab runs the program.

    sets: values, such as "webhook.enabled=true".

    Raises:
        LabError: helm is not built, or refuses the chart.
    """
    folder = _root() / "charts" / NAME
    image = ("--set", ",".join(("image=lab/osdpl-controller", *sets)))
    words = ("template", NAME, folder, "--namespace", ACCOUNT[0], *image)
    text = helm.run(where, (*words, "--include-crds"))
    documents = yaml.safe_load_all(text)
    return [
        document
        for document in documents
        if document and document["kind"] != "Deployment"
    ]


def install(where: places.Places) -> None:
    """Apply CRDs, ServiceAccount and RBAC of the chart, and write its kubeconfig.

    Raises:
        LabError: kubectl or the API server did not accept them.
    """
    documents = chart_objects(where, "webhook.enabled=false")
    crds = [
        document
        for document in documents
        if document["kind"] == "CustomResourceDefinition"
    ]
    others = [document for document in documents if document not in crds]
    for group in (crds, others):
        control_plane.apply_manifests(where, yaml.safe_dump_all(group))
    admin = control_plane.admin_kubeconfig(where)
    api = cluster.connect(admin)
    cluster.service_account_kubeconfig(api, admin, ACCOUNT, kubeconfig(where))


def install_webhook(where: places.Places, *sets: str) -> None:
    """Apply the chart's ValidatingWebhookConfiguration; `remove_webhook` deletes it.

    The API server asks the controller by its address: the lab has no Services. sets:
    values of the chart, such as "webhook.failurePolicy=Fail".

    Raises:
        LabError: kubectl or the API server did not accept it.
    """
    kind = resources.VALIDATING_WEBHOOKS.kind
    (matching,) = (
        document for document in chart_objects(where, *sets) if document["kind"] == kind
    )
    for webhook in matching["webhooks"]:
        service = webhook["clientConfig"].pop("service")
        port = where.port(WEBHOOK)
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{service['path']}"
    control_plane.apply_manifests(where, yaml.safe_dump(matching))


def refused_change(api: client.Api) -> str:
    """Return in which words the webhook refuses CHANGE, which is only a dry run.

    Raises:
        LabError: it was not asked, or has admitted the change, for some time.
        KubeError: the API server refused it for another reason.
    """
    refusals: list[str] = []

    def is_refused() -> bool:
        try:
            api.patch(
                deployment.DEPLOYMENTS,
                deployment.NAME,
                json.dumps(CHANGE).encode(),
                deployment.NAMESPACE,
                query={"dryRun": "All"},
                timeout_s=cluster.TIMEOUT_S,
            )
        except kube_errors.KubeError as error:
            if _DENIED not in error.message:
                raise
            refusals.append(error.message.partition(_DENIED)[2])
        return bool(refusals)

    waiting.until(f"the webhook refuses {CHANGE}", is_refused, poll_s=_POLL_S)
    return refusals[0]


def remove_webhook(api: client.Api) -> None:
    """Delete the ValidatingWebhookConfiguration, if there is one."""
    with contextlib.suppress(kube_errors.NotFound):
        kind = resources.VALIDATING_WEBHOOKS
        api.delete(kind, NAME, timeout_s=cluster.TIMEOUT_S)


def kubeconfig(where: places.Places) -> pathlib.Path:
    """Return the kubeconfig with exactly the rights of the chart."""
    return where.state / f"{NAME}.kubeconfig"


def start(where: places.Places, pex: pathlib.Path, extra: Sequence[str] = ()) -> None:
    """Start the controller; return once it is ready.

    Raises:
        LabError: helm is not built, or the controller did not become ready.
    """
    launch(where, pex, extra)
    port = where.port(NAME)
    processes.wait_for(where, NAME, lambda: _serves(port))


def _sources(where: places.Places) -> Sequence[str]:
    """Return the sources of charts that a spec may name, those on loopback by name."""
    names = {"http": chart_sources.REPOSITORY, "oci": chart_sources.REGISTRY}
    local = [
        f"{scheme}://{ports.LOOPBACK}:{where.port(name)}"
        for scheme, name in names.items()
    ]
    nowhere = f"http://{ports.LOOPBACK}:9"
    return ("*", *local, nowhere, "/")


def launch(where: places.Places, pex: pathlib.Path, extra: Sequence[str] = ()) -> None:
    """Start the controller, which may never become ready; errors: see `start`."""
    port = where.port(NAME)
    words = (
        f"--kubeconfig={kubeconfig(where)}",
        f"--namespace={deployment.NAMESPACE}",
        f"--helm={programs.path(where, 'helm')}",
        f"--chart-cache={where.state / 'charts'}",
        # Repository and registry of the lab are on loopback, its folders anywhere.
        f"--allowed-chart-sources={','.join(_sources(where))}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--webhook-port={where.port(WEBHOOK)}",
        "--logging-format=json",
        *extra,
    )
    processes.start(
        where, NAME, [*pexes.command(pex), *words], pexes.environment(where)
    )


def is_ready(where: places.Places) -> bool:
    """Report whether the controller runs and answers."""
    return processes.find(where, NAME) is not None and _serves(where.port(NAME))


def _serves(port: int) -> bool:
    status, _ = ask(port, "/readyz")
    return status == 200


def ask(port: int, path: str, token: str = "") -> tuple[int, str]:
    """Return status and body of a path of the controller; status 0: no answer.

    token: of the client; empty: it shows none.
    """
    context = tls.unverified()
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=_ASK_S, context=context
    )
    try:
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, ""


def apply(api: client.Api, document: Mapping[str, Any]) -> None:
    """Create or replace an OpenStackDeployment, as its user.

    Raises:
        KubeError: the API server refused it.
    """
    meta = document["metadata"]
    body = json.dumps(document).encode()
    try:
        api.create(
            deployment.DEPLOYMENTS,
            body,
            meta["namespace"],
            timeout_s=cluster.TIMEOUT_S,
        )
    except kube_errors.AlreadyExists:
        api.patch(
            deployment.DEPLOYMENTS,
            meta["name"],
            json.dumps({"spec": document["spec"]}).encode(),
            meta["namespace"],
            timeout_s=cluster.TIMEOUT_S,
        )
