"""Cluster API and a provider's CRDs, contracts and rights: a row for each defect."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lib.doctor import cluster, machine_api
from lib.doctor.model import CheckState, Read, ReadFailure, Right
from lib.kube import client, errors, resources
from lib.kube.fake import api as fake_api

CORE, GROUP = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
V1BETA2 = f"{CORE}/v1beta2"
OWNERS = resources.Resource(CORE, "v1beta2", "machines", "Machine", True)
MACHINES = resources.Resource(GROUP, "v1alpha1", "fakemachines", "FakeMachine", True)
LEASES = Right(
    "update", "coordination.k8s.io", "leases", "", "kube-system", "the-lease"
)
EXPECTED = machine_api.MachineProvider(
    "fake-capi",
    (OWNERS,),
    (MACHINES,),
    {V1BETA2: "v1alpha1"},
    (Right("list", GROUP, "fakemachines"), LEASES),
    finalizers={MACHINES: f"fakemachine.{GROUP}"},
)
ACCOUNT = "system:serviceaccount:capi:fake-capi"
Json = dict[str, Any]


class Answering(fake_api.FakeApi):
    """A fake API server that answers questions for rights.

    missing: verbs that are not granted. reviews: the questions. refuses: it rejects
    them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.missing: set[str] = set()
        self.reviews: list[Json] = []
        self.refuses = False

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        if not path.endswith("accessreviews"):
            return super().request(
                method,
                path,
                query=query,
                body=body,
                content_type=content_type,
                timeout_s=timeout_s,
            )
        if self.refuses:
            raise errors.Forbidden("no reviews", operation="POST", status=403)
        asked = json.loads(body or b"{}")["spec"]
        self.reviews.append(asked)
        verb = asked["resourceAttributes"]["verb"]
        return json.dumps({"status": {"allowed": verb not in self.missing}}).encode()


def definition(kind: resources.Resource, **labels: str) -> Json:
    return {
        "metadata": {"name": machine_api.name_of(kind), "labels": labels},
        "spec": {"versions": [{"name": kind.version, "served": True}]},
    }


def deployment(namespace: str = "capi") -> Json:
    name = "fake-capi"
    about = {
        "name": name,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/name": name},
    }
    container = {"name": name, "image": f"registry/{name}:0.1.0"}
    return {
        "metadata": about,
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


OF_CORE = definition(OWNERS)
OF_PROVIDER = definition(MACHINES, **{V1BETA2: "v1alpha1"})


def put(api: Answering, *documents: Json) -> None:
    for document in documents:
        is_crd = "template" not in document["spec"]
        kind = resources.DEFINITIONS if is_crd else resources.DEPLOYMENTS
        api.put(kind, copy.deepcopy(document))


def whole(api: Answering) -> None:
    put(api, OF_CORE, OF_PROVIDER, deployment())


def without_core(api: Answering) -> None:
    put(api, OF_PROVIDER, deployment())


def old_core(api: Answering) -> None:
    document = copy.deepcopy(OF_CORE)
    document["spec"]["versions"] = [
        {"name": "v1beta1", "served": True},
        {"name": "v1beta2", "served": False},
    ]
    put(api, document, OF_PROVIDER, deployment())


def without_crds(api: Answering) -> None:
    put(api, OF_CORE, deployment())


def without_label(api: Answering) -> None:
    put(api, OF_CORE, definition(MACHINES), deployment())


def other_contract(api: Answering) -> None:
    labels = {V1BETA2: "v1alpha2_v1alpha3"}
    put(api, OF_CORE, definition(MACHINES, **labels), deployment())


def several_versions(api: Answering) -> None:
    labels = {V1BETA2: "v1alpha1_v1alpha2"}
    put(api, OF_CORE, definition(MACHINES, **labels), deployment())


def without_deployment(api: Answering) -> None:
    put(api, OF_CORE, OF_PROVIDER)


def two_releases(api: Answering) -> None:
    put(api, OF_CORE, OF_PROVIDER, deployment(), deployment("other"))


def lacking_a_right(api: Answering) -> None:
    whole(api)
    api.missing = {"update"}


def refusing_reviews(api: Answering) -> None:
    whole(api)
    api.refuses = True


RUNS = ("OK", "fake-capi 0.1.0 runs as capi/fake-capi")
RIGHTS = ("OK", f"{ACCOUNT} has all 2 permissions of the chart")
GOOD = ("OK", f"Cluster API serves v1beta2; 1 CRDs with {V1BETA2}")
ROWS: dict[str, tuple[Callable[[Answering], None], list[tuple[str, str]]]] = {
    "all is well": (whole, [GOOD, RUNS, RIGHTS]),
    "a label with several versions": (several_versions, [GOOD, RUNS, RIGHTS]),
    "nothing is installed": (
        lambda api: None,
        [("SKIP", "skipped: neither Cluster API nor fake-capi is installed")],
    ),
    "no core": (
        without_core,
        [("FAIL", "CRD machines.cluster.x-k8s.io: not found"), RUNS, RIGHTS],
    ),
    "a core that does not serve the version": (
        old_core,
        [
            (
                "FAIL",
                "CRD machines.cluster.x-k8s.io: served versions v1beta1: must include"
                " v1beta2",
            ),
            RUNS,
            RIGHTS,
        ],
    ),
    "no CRDs of the provider": (
        without_crds,
        [("FAIL", f"CRD fakemachines.{GROUP}: not found"), RUNS, RIGHTS],
    ),
    "no label of the contract": (
        without_label,
        [
            (
                "FAIL",
                f'CRD fakemachines.{GROUP}: label {V1BETA2} is "": must contain'
                ' "v1alpha1"',
            ),
            RUNS,
            RIGHTS,
        ],
    ),
    "a label with other versions": (
        other_contract,
        [
            (
                "FAIL",
                f"CRD fakemachines.{GROUP}: label {V1BETA2} is"
                ' "v1alpha2_v1alpha3": must contain "v1alpha1"',
            ),
            RUNS,
            RIGHTS,
        ],
    ),
    "no Deployment": (
        without_deployment,
        [
            GOOD,
            (
                "WARN",
                "fake-capi: no Deployment with the label"
                " app.kubernetes.io/name=fake-capi",
            ),
        ],
    ),
    "two releases": (
        two_releases,
        [
            GOOD,
            RUNS,
            ("OK", "fake-capi 0.1.0 runs as other/fake-capi"),
            ("FAIL", "2 releases of fake-capi"),
            RIGHTS,
            ("OK", RIGHTS[1].replace(":capi:", ":other:")),
        ],
    ),
    "a right is missing": (
        lacking_a_right,
        [
            GOOD,
            RUNS,
            (
                "FAIL",
                f"{ACCOUNT} cannot update leases.coordination.k8s.io the-lease in"
                " namespace capi",
            ),
        ],
    ),
    "rights cannot be asked for": (
        refusing_reviews,
        [GOOD, RUNS, ("SKIP", f"{ACCOUNT}: POST: no reviews")],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_defect_has_a_line_with_a_remedy(row: str) -> None:
    arrange, expected = ROWS[row]
    api = Answering()
    arrange(api)
    read = Read(cluster.ClusterReader(api, 5.0).machine_api(EXPECTED))
    lines = machine_api.results(EXPECTED, read)
    print(row, *lines, sep="\n  ")
    assert [(line.state.value, line.text) for line in lines] == expected
    for line in lines:
        needs_remedy = line.state in (CheckState.FAILED, CheckState.WARNING)
        assert bool(line.remedy) == needs_remedy


def test_rights_are_asked_for_the_account_in_its_namespace() -> None:
    api = Answering()
    whole(api)
    cluster.ClusterReader(api, 5.0).machine_api(EXPECTED)
    assert {review["user"] for review in api.reviews} == {ACCOUNT}
    spaces = [r["resourceAttributes"].get("namespace") for r in api.reviews]
    assert spaces == [None, "capi"]


def test_what_cannot_be_read_is_skipped() -> None:
    (line,) = machine_api.results(EXPECTED, ReadFailure("HTTP 403"))
    assert (line.state, line.text) == (CheckState.SKIPPED, "HTTP 403")


EXTENSIONS = resources.Resource(
    "runtime.cluster.x-k8s.io", "v1beta2", "extensionconfigs", "ExtensionConfig", False
)


def extension(api: Answering, name: str, *ready: bool) -> None:
    """Create an ExtensionConfig, and a Service with these endpoints."""
    service = {"namespace": "capi", "name": name}
    spec = {"clientConfig": {"service": service}}
    api.put(EXTENSIONS, {"metadata": {"name": name}, "spec": spec})
    about = {**service, "labels": {"kubernetes.io/service-name": name}}
    endpoints = [{"conditions": {"ready": is_ready}} for is_ready in ready]
    api.put(resources.ENDPOINT_SLICES, {"metadata": about, "endpoints": endpoints})


def test_an_extension_without_endpoints_is_a_failure() -> None:
    """Its program was stopped: no MachineDeployment changes its template any more."""
    api = Answering()
    whole(api)
    extension(api, "answers", False, True)
    extension(api, "starts", False)
    extension(api, "stopped")
    read = Read(cluster.ClusterReader(api, 5.0).machine_api(EXPECTED))
    lines = machine_api.results(EXPECTED, read)
    failed = [line for line in lines if line.state is CheckState.FAILED]
    print(*failed, sep="\n")
    assert [line.text.partition(":")[0] for line in failed] == [
        "ExtensionConfig starts",
        "ExtensionConfig stopped",
    ]
    assert all("rollouts" in line.text and line.remedy for line in failed)


def test_finalizers_of_others_are_listed() -> None:
    """Those of a program that was replaced keep an object for ever."""
    api = Answering()
    whole(api)
    own = f"fakemachine.{GROUP}"
    for name, finalizers in {"own": [own], "both": [own, "example.com/old"]}.items():
        about = {"name": name, "namespace": "capi", "finalizers": finalizers}
        api.put(MACHINES, {"metadata": about})
    read = Read(cluster.ClusterReader(api, 5.0).machine_api(EXPECTED))
    lines = machine_api.results(EXPECTED, read)
    (line,) = (line for line in lines if "finalizers" in line.text)
    print(line)
    assert line.state is CheckState.WARNING
    assert "FakeMachine capi/both" in line.text
    assert "example.com/old" in line.text
    assert own not in line.text
