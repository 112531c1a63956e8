"""The admission webhook behind a real API server: rules, certificates, replicas.

failurePolicy is Fail here, so that a request which the webhook did not answer shows.
"""

import base64
import contextlib
import dataclasses
import datetime
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.kube import cluster
from lib.lab.osdpl import controller, deployment
from lib.lab.run import processes, tls, waiting
from lib.osdpl.api import annotations as annotations_
from lib.osdpl.api import merge
from lib.osdpl.rules import table
from lib.osdpl.webhook import webhook, webhook_certificate
from lib.process import certificates
from tests.harness import testing
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import TIMEOUT_S, OperatorStage
from tests.lib.osdpl.rules.examples import EXAMPLES, Example, Tree, change

DENIED = "denied the request: "
EMPTY = "no certificate at all"
NOT_ANSWERED = "failed calling webhook"
SOURCE = "https://charts.invalid/openstack-helm"
FIRST = "first"
DAY = datetime.timedelta(days=1)
BY_SCHEMA = {"horizon theme: name"}
"""Rules of which the CRD's schema refuses the invalid example before they are asked."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What an example means as a request to the API server.

    name: of the object. old: the object that exists already, None: it is created.
    """

    name: str
    operation: str
    new: Mapping[str, Any]
    old: Mapping[str, Any] | None
    facts: Mapping[str, Any]


def document(name: str, tree: Tree, **status: Any) -> dict[str, Any]:
    """Return the object of an example: a draft, so that nothing is done for it."""
    manifest = deployment.manifest(SOURCE, name)
    del manifest["spec"]["features"]["glance"]  # rows have backends of their own
    own = {key: value for key, value in tree.items() if key[0] != "_"}
    spec = merge.merge(manifest["spec"], own)
    forced = ",".join(tree.get("_forced", ()))
    if forced:
        manifest["metadata"]["annotations"] = {annotations_.FORCE: forced}
    forced = ",".join(tree.get("_forced", ()))
    annotations = {annotations_.FORCE: forced} if forced else {}
    metadata = {**manifest["metadata"], "annotations": annotations}
    whole = {**manifest, "metadata": metadata, "spec": {**spec, "draft": True}}
    return {**whole, **status}


def request(name: str, tree: Tree) -> Request:
    """Return the request of an example."""
    new = document(name, tree)
    old: Mapping[str, Any] | None = None
    operation = "create"
    if "_from" in tree:
        operation, before = "update", {**tree, "openstack_version": tree["_from"]}
        old = document(name, {**before, **tree.get("_before", {})})
    elif "_status" in tree:
        operation = "status"
        new = document(name, tree, status=tree["_status"])
        old = document(name, tree, status=tree["_status_before"])
    elif "_is_deletion" in tree:
        operation, old = "delete", new
    return Request(name, operation, new, old, tree)


def requests() -> Iterator[tuple[Example, Request, Request]]:
    """Yield the invalid and the valid request of each example."""
    for index, example in enumerate(EXAMPLES):
        yield (
            example,
            request(f"row-{index}-invalid", example.invalid),
            request(f"row-{index}-valid", example.valid),
        )


@pytest.fixture(scope="module")
def site(where: places.Places) -> Iterator[OperatorStage]:
    """Run a cluster with the facts of all examples, controller and webhook."""
    with stage.opened(where, pexes.beside(pexes.OSDPL), testing.shown()) as opened:
        for _, *pair in requests():
            for replica in pair:
                put_state(opened, replica)
        opened.start()
        controller.install_webhook(where, "webhook.failurePolicy=Fail")
        wait_answered(opened)
        yield opened


def put_state(site: OperatorStage, asked: Request) -> None:
    """Create the OpenStackDeploymentStatus of an example."""
    state = asked.facts.get("_state", "APPLIED")
    version = asked.facts.get("_from", "")
    osdpl: dict[str, Any] = {"state": state, "openstack_version": version}
    if asked.facts.get("_is_upgrading"):
        recorded = asked.facts["_recorded"]
        osdpl |= {"upgrade": {"to": version}, "fields": recorded}
    body = {
        "apiVersion": deployment.STATUSES.api_version,
        "kind": deployment.STATUSES.kind,
        "metadata": {"name": asked.name},
        "status": {"osdpl": osdpl},
    }
    site.api.create(
        deployment.STATUSES,
        json.dumps(body).encode(),
        deployment.NAMESPACE,
        timeout_s=TIMEOUT_S,
    )


def wait_answered(site: OperatorStage) -> None:
    """Wait until the API server trusts the webhook, and asks it."""
    invalid = document("asks", {"nodes": {"rack": {}}})
    waiting.until(
        "the API server asks the webhook",
        lambda: DENIED in create(site, invalid),
        poll_s=0.5,
    )


def create(site: OperatorStage, body: Mapping[str, Any], *, dry: bool = True) -> str:
    """Create an OpenStackDeployment; return why it was refused, empty: it was not."""
    query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry else {})}
    return refusal(
        lambda: site.api.create(
            deployment.DEPLOYMENTS,
            json.dumps(body).encode(),
            deployment.NAMESPACE,
            query=query,
            timeout_s=TIMEOUT_S,
        )
    )


def refusal(send: Any) -> str:
    try:
        send()
    except kube_errors.KubeError as error:
        return error.message
    return ""


def patch(
    api: client.Api, name: str, body: Mapping[str, Any], sub: str | None = None
) -> str:
    """Change an OpenStackDeployment for real; return why it was refused."""
    return refusal(
        lambda: api.patch(
            deployment.DEPLOYMENTS,
            name,
            json.dumps(body).encode(),
            deployment.NAMESPACE,
            subresource=sub,
            timeout_s=TIMEOUT_S,
        )
    )


def send(site: OperatorStage, asked: Request) -> str:
    """Send the request of an example, as a dry run; return why it was refused."""
    if asked.operation == "create":
        return create(site, asked.new)
    sub = "status" if asked.operation == "status" else None
    path = deployment.DEPLOYMENTS.path(deployment.NAMESPACE, asked.name, sub)
    if asked.operation == "delete":
        body, method, kind = {"dryRun": ["All"]}, "DELETE", client.JSON
        return refusal(
            lambda: site.api.request(
                method,
                path,
                body=json.dumps(body).encode(),
                content_type=kind,
                timeout_s=TIMEOUT_S,
            )
        )
    changed = {"spec": replaced(asked, "spec")}
    if sub:
        changed = {"status": replaced(asked, "status")}
    return refusal(
        lambda: site.api.request(
            "PATCH",
            path,
            query={"dryRun": "All", "fieldValidation": "Strict"},
            body=json.dumps(changed).encode(),
            content_type=client.MERGE_PATCH,
            timeout_s=TIMEOUT_S,
        )
    )


def replaced(asked: Request, part: str) -> Any:
    """Return a merge patch that replaces a part of the object by the new one."""
    old = (asked.old or {}).get(part) or {}
    return difference(old, asked.new.get(part) or {})


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    changes: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            changes[key] = difference(before, value)
        elif value != before:
            changes[key] = value
    return changes


@contextlib.contextmanager
def existing(site: OperatorStage, asked: Request) -> Iterator[str]:
    """Have the object exist that the request changes; yield why that is refused."""
    if asked.old is None:
        yield ""
        return
    why = create(site, asked.old, dry=False)
    try:
        if not why and asked.operation == "status":
            # As the controller, for which there is no webhook.
            status = {"status": asked.old["status"]}
            assert patch(as_controller(site), asked.name, status, "status") == ""
        yield why
    finally:
        remove(site, asked.name)


def as_controller(site: OperatorStage) -> client.Api:
    return cluster.connect(controller.kubeconfig(site.where))


def remove(site: OperatorStage, name: str) -> None:
    """Delete an object; without its status no rule is against it."""
    site.delete(deployment.STATUSES, name)

    def is_gone() -> bool:
        with contextlib.suppress(kube_errors.KubeError):
            site.delete(deployment.DEPLOYMENTS, name)
        return site.get(deployment.DEPLOYMENTS, name) is None

    waiting.until(f"{name} is deleted", is_gone, poll_s=0.2)
    waiting.until(
        f"the controller knows that {name} is deleted",
        lambda: "is older" not in create(site, document("next", {})),
        poll_s=0.2,
    )


def wait_until_known(site: OperatorStage, name: str) -> None:
    """Wait until the controller refuses a second object besides this one."""
    waiting.until(
        f"the controller knows {name}",
        lambda: "is older" in create(site, document("next", {})),
        poll_s=0.2,
    )


def expected(tree: Tree) -> dict[str, str]:
    return {
        rule.name: str(violation) for rule, violation in table.violations(change(tree))
    }


def test_each_rule_is_applied_by_the_api_server(site: OperatorStage) -> None:
    """Rule x invalid example x message; the valid example is admitted."""
    wrong, by_schema = [], set()
    for example, invalid, valid in requests():
        if "_others" in example.invalid:
            assert create(site, document(FIRST, {}), dry=False) == ""
            wait_until_known(site, FIRST)
        with existing(site, invalid) as before:
            why = before or send(site, invalid)
        if "_others" in example.invalid:
            remove(site, FIRST)
        (message,) = expected(example.invalid).values()
        if DENIED in why:
            who, shown = "webhook", why.partition(DENIED)[2]
        else:
            who, shown = "schema", why
            by_schema.add(example.rule)
        with existing(site, valid) as before:
            admitted = before or send(site, valid)
        print(f"{who:8} {example.rule:60} {shown}")
        if who == "webhook" and message not in shown:
            wrong.append((example.rule, "message", message, shown))
        if not why or NOT_ANSWERED in why:
            wrong.append((example.rule, "invalid is admitted", why, ""))
        if admitted:
            wrong.append((example.rule, "valid is refused", admitted, ""))
    print(f"{len(EXAMPLES)} rules, {len(by_schema)} of them by the schema first")
    assert {example.rule for example in EXAMPLES} == {rule.name for rule in table.RULES}
    for row in wrong:
        print(*row, sep="\n    ")
    assert wrong == []
    assert by_schema == BY_SCHEMA


def test_what_does_not_change_the_spec_is_admitted(site: OperatorStage) -> None:
    """Also for an invalid object: it can be annotated, and deleted."""
    controller.remove_webhook(site.api)
    name = "invalid"
    waiting.until(
        "an invalid object is created without the webhook",
        lambda: not create(site, document(name, {"nodes": {"rack": {}}}), dry=False),
    )
    controller.install_webhook(site.where, "webhook.failurePolicy=Fail")
    wait_answered(site)
    try:
        noted = {"metadata": {"annotations": {"mooring.io/paused": "true"}}}
        assert patch(site.api, name, noted) == ""
        changed = {"spec": {"size": "small"}}
        assert 'spec.nodes: invalid value "rack"' in patch(site.api, name, changed)
        assert patch(site.api, name, {"spec": {"nodes": {"rack": None}}}) == ""
    finally:
        remove(site, name)


def test_the_controller_is_never_asked_about_its_own_writes(
    site: OperatorStage,
) -> None:
    name = "own"
    assert create(site, document(name, {}), dry=False) == ""
    try:
        status = {"status": {"credentials": {"admin": {"rotation_id": 7}}}}
        assert DENIED in patch(site.api, name, status, "status")
        assert patch(as_controller(site), name, status, "status") == ""
    finally:
        remove(site, name)


def held(site: OperatorStage) -> webhook_certificate.Held:
    """Return the content of the Secret, all empty if there is none."""
    secret = site.get(resources.SECRETS, webhook.SECRET) or {}
    data = {k: base64.b64decode(v) for k, v in (secret.get("data") or {}).items()}
    return webhook_certificate.Held.parse(data)


def put(site: OperatorStage, content: webhook_certificate.Held) -> None:
    """Replace the content of the Secret."""
    data = {k: base64.b64encode(v).decode() for k, v in content.data().items()}
    site.api.patch(
        resources.SECRETS,
        webhook.SECRET,
        json.dumps({"data": data}).encode(),
        deployment.NAMESPACE,
        timeout_s=TIMEOUT_S,
    )


def bundle(site: OperatorStage) -> bytes:
    """Return the authorities that the API server trusts."""
    configuration = json.loads(
        site.api.read(
            resources.VALIDATING_WEBHOOKS, controller.NAME, timeout_s=TIMEOUT_S
        )
    )
    (only,) = configuration["webhooks"]
    return base64.b64decode(only["clientConfig"].get("caBundle", ""))


def served(port: int) -> bytes:
    """Return the certificate that a replica shows, PEM; empty: it shows none."""
    context = tls.unverified()
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as plain,
            context.wrap_socket(plain) as encrypted,
        ):
            shown = encrypted.getpeercert(binary_form=True) or b""
    except OSError:
        return b""
    return ssl.DER_cert_to_PEM_cert(shown).encode()


def settled(site: OperatorStage, ports: tuple[int, ...]) -> webhook_certificate.Held:
    """Return the Secret once it is published, served by all and due for nothing."""
    now = datetime.datetime.now(datetime.UTC)
    names = webhook.names(deployment.NAMESPACE)

    def is_settled() -> bool:
        content = held(site)
        if not content.bundle:
            return False
        step = webhook_certificate.step(content, (bundle(site),), names, now)
        shown = {served(port) for port in ports}
        is_shown = shown == {content.serving.certificate}
        return not step.why and bundle(site) == content.bundle and is_shown

    waiting.until("the certificate is published and served", is_settled, poll_s=0.3)
    return held(site)


@pytest.fixture(scope="module")
def second(site: OperatorStage) -> Iterator[int]:
    """Run a second replica, which does not hold the Lease; give its webhook port."""
    ports = (site.where.port("chart-registry"), site.where.port("chart-repository"))
    name = f"{controller.NAME}-2"
    words = (
        f"--kubeconfig={controller.kubeconfig(site.where)}",
        f"--namespace={deployment.NAMESPACE}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[0]}",
        f"--webhook-port={ports[1]}",
    )
    command = [*pexes.command(site.pex), *words]
    processes.start(site.where, name, command, pexes.environment(site.where))
    try:
        waiting.until(
            "it is ready", lambda: controller.ask(ports[0], "/readyz")[0] == 200
        )
        yield ports[1]
    finally:
        processes.stop(site.where, [name])


def aged(authority_days: int, certificate_days: int) -> webhook_certificate.Held:
    """Return what was created so many days ago."""
    now = datetime.datetime.now(datetime.UTC)
    signer = certificates.authority(
        "lab", now - authority_days * DAY, webhook_certificate.AUTHORITY_FOR
    )
    serving = certificates.issue(
        signer,
        webhook.names(deployment.NAMESPACE),
        now - certificate_days * DAY,
        webhook_certificate.CERTIFICATE_FOR,
    )
    return webhook_certificate.Held(signer.certificate, signer.key, serving)


def test_certificates_are_created_renewed_and_replaced(
    site: OperatorStage, second: int
) -> None:
    """By change of the Secret: what of it stays; the API server is always answered."""
    ports = (site.where.port(controller.WEBHOOK), second)
    first = settled(site, ports)
    rows: dict[str, tuple[webhook_certificate.Held | None, bool, bool]] = {
        "restored as it was": (first, True, True),
        "certificate ends in 65 days": (aged(1, 300), True, False),
        "authority ends in 3 years": (aged(3650 - 1000, 1), True, False),
        "key of another certificate": (
            dataclasses.replace(
                first,
                serving=certificates.CertificatePair(
                    first.serving.certificate, aged(1, 1).serving.key
                ),
            ),
            False,
            False,
        ),
        "certificate of another authority": (
            dataclasses.replace(first, serving=aged(1, 1).serving),
            False,
            False,
        ),
        EMPTY: (webhook_certificate.Held.parse({}), False, False),
        "Secret deleted": (None, False, False),
    }
    for name, (content, keeps_authority, keeps_certificate) in rows.items():
        if content is None:
            site.delete(resources.SECRETS, webhook.SECRET)
        else:
            put(site, content)
        after = settled(site, ports)
        before = (
            certificates.split(content.bundle) if content and content.bundle else ()
        )
        trusted = certificates.split(after.bundle)
        kept = bool(before) and before[0] in trusted
        same = content is not None and content.serving == after.serving
        print(f"{name:34} authority kept: {kept!s:6} certificate kept: {same}")
        assert (kept, same) == (keeps_authority, keeps_certificate), name
        wait_answered(site)


def test_an_authority_removed_from_the_configuration_is_published_again(
    site: OperatorStage, second: int
) -> None:
    ports = (site.where.port(controller.WEBHOOK), second)
    settled(site, ports)
    controller.remove_webhook(site.api)
    controller.install_webhook(site.where, "webhook.failurePolicy=Fail")
    settled(site, ports)
    wait_answered(site)


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
def test_without_the_controller_the_policy_decides(
    site: OperatorStage, policy: str
) -> None:
    site.stop()
    try:
        controller.install_webhook(site.where, f"webhook.failurePolicy={policy}")
        is_admitted = policy == "Ignore"
        invalid = document("asks", {"nodes": {"rack": {}}})
        waiting.until(
            f"the API server applies the policy {policy}",
            lambda: (create(site, invalid) == "") is is_admitted,
            poll_s=0.5,
        )
        why = create(site, invalid)
        print(f"{policy}: {why or 'admitted'}")
        assert is_admitted or NOT_ANSWERED in why
    finally:
        controller.install_webhook(site.where, "webhook.failurePolicy=Fail")
        site.start()
        wait_answered(site)


def test_reviews_are_counted_and_no_key_is_shown(site: OperatorStage) -> None:
    keys = [held(site).authority_key, held(site).serving.key]
    assert all(b"PRIVATE KEY" in key for key in keys)
    for line in b"\n".join(keys).decode().splitlines():
        if "PRIVATE KEY" not in line and len(line) > 20:
            assert line not in site.log()
    assert "request denied" in site.log()
