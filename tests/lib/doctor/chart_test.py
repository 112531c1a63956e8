"""What an umbrella chart requires: a row for each defect, with its sentence."""

import base64
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from lib.cloud import checkup, errors
from lib.doctor import chart, deployed
from lib.doctor.chart import CloudName
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.process import config

TOKEN = "s3cret-token"
CLASSES = resources.Resource("example.com", "v1", "shapes", "Shape", False)
DENIED = errors.Forbidden("permission denied", operation="list servers")
FIRST = "Deployment system/manager"
TITLE = f"{FIRST}: Secret system/cloud, key kubeconfig"
VALID = (("OK", f"{TITLE}: user u, project here"),)
REST = (
    ("OK", "no program of the reference runs"),
    ("OK", "1 names in objects of the cluster exist"),
)
Json = dict[str, Any]


@dataclasses.dataclass
class FakeCloud:
    """A cloud with one class; its user is of one project."""

    project: str
    is_accepted: bool = True
    classes: tuple[str, ...] | errors.CloudError = ("large", "small")

    def login(self) -> checkup.Login:
        if not self.is_accepted:
            text = "the credentials are rejected"
            raise errors.Unauthenticated(text, operation="authenticate")
        return checkup.Login("u", self.project)

    def services(self) -> tuple[checkup.ServiceEndpoint, ...]:
        error = None if self.project == "here" else DENIED
        return (checkup.ServiceEndpoint("servers", True, "url", "v1", error=error),)

    def offered(self) -> checkup.Offered:
        return {"Class": self.classes}


@dataclasses.dataclass
class Scene:
    """A cluster with one component, and the cloud. running: of the reference."""

    api: fake_api.FakeApi = dataclasses.field(default_factory=fake_api.FakeApi)
    secret: Json | None = dataclasses.field(
        default_factory=lambda: {"kubeconfig": f"token: {TOKEN}", "namespace": "here"}
    )
    env: list[Json] = dataclasses.field(
        default_factory=lambda: [{"name": "PROJECT", "value": "here"}]
    )
    args: tuple[str, ...] = ("--parent-kubeconfig=/etc/parent/kubeconfig",)
    names: tuple[str, ...] = ("small",)
    versions: tuple[str, ...] = ("v1",)
    running: tuple[str, ...] = ()
    is_accepted: bool = True
    classes: tuple[str, ...] | errors.CloudError = ("large", "small")

    def open(self, files: deployed.CloudFiles, timeout_s: float) -> Any:
        del timeout_s
        if b"token" not in files.content:
            problem = config.stated(files.title, "no token")
            raise config.ConfigError([problem])
        project = files.variables.get("PROJECT", "")
        return FakeCloud(project, self.is_accepted, self.classes)

    def results(self) -> list[tuple[str, str]]:
        self.api.put(resources.DEPLOYMENTS, self.deployment())
        if self.secret is not None:
            data = {
                key: base64.b64encode(text.encode()).decode()
                for key, text in self.secret.items()
            }
            about = {"name": "cloud", "namespace": "system"}
            self.api.put(resources.SECRETS, {"metadata": about, "data": data})
        for number, name in enumerate(self.names):
            about = {"name": f"s{number}"}
            self.api.put(CLASSES, {"metadata": about, "spec": {"class": name}})
        versions = [{"name": name, "served": True} for name in self.versions]
        crd = {"metadata": {"name": "shapes.example.com"}}
        self.api.put(resources.DEFINITIONS, {**crd, "spec": {"versions": versions}})
        lines = chart.results(self.api, self.expected(), 5)
        return [(line.state.value, line.text) for line in lines]

    def expected(self) -> chart.UmbrellaChart:
        def names(item: chart.NamingObject) -> Iterator[CloudName]:
            yield CloudName("spec.class", "Class", item.spec["class"])

        return chart.UmbrellaChart(
            "cloud-provider-x",
            {"manager": "manager"},
            ("kubeconfig",),
            {"namespace": "PROJECT"},
            "CREDENTIALS",
            (CLASSES,),
            (chart.NamingKind(CLASSES, names),),
            self.open,
            lambda api, timeout_s: self.running,
            zones_of,
        )

    def deployment(self) -> Json:
        container = {
            "name": "manager",
            "args": list(self.args),
            "env": self.env,
            "volumeMounts": [{"name": "parent", "mountPath": "/etc/parent"}],
        }
        volume = {"name": "parent", "secret": {"secretName": "cloud"}}
        pod = {"containers": [container], "volumes": [volume]}
        about = {
            "name": "manager",
            "namespace": "system",
            "labels": {"app.kubernetes.io/name": "manager"},
        }
        return {"metadata": about, "spec": {"template": {"spec": pod}}}


def zones_of(component: str, words: Sequence[str]) -> Iterator[config.FieldProblem]:
    assert component == "manager"
    if "--zones=" in words:
        yield config.not_set("--zones", "zones of the cloud")


def from_secret(key: str) -> Json:
    return {
        "name": "PROJECT",
        "valueFrom": {"secretKeyRef": {"name": "cloud", "key": key}},
    }


NO_CLOUD = (REST[0], ("SKIP", "names in the cloud: no credentials are valid"))
ROWS: dict[str, tuple[Callable[[], Scene], tuple[tuple[str, str], ...]]] = {
    "all is well": (Scene, (*VALID, *REST)),
    "the project is a key of the Secret": (
        lambda: Scene(env=[from_secret("namespace")]),
        (*VALID, *REST),
    ),
    "no Secret": (
        lambda: Scene(secret=None),
        (("FAIL", f"{TITLE}: not found"), *NO_CLOUD),
    ),
    "another key": (
        lambda: Scene(secret={"config": TOKEN}),
        (
            (
                "FAIL",
                f"{FIRST}: Secret system/cloud: key kubeconfig not found: the Secret"
                " has config",
            ),
            *NO_CLOUD,
        ),
    ),
    "malformed": (
        lambda: Scene(secret={"kubeconfig": "x"}),
        (("FAIL", f"{TITLE}: no token"), *NO_CLOUD),
    ),
    "no flag": (
        lambda: Scene(args=()),
        (
            (
                "FAIL",
                f"{FIRST}: no container has --cloud-config; set"
                " --cloud-config or --cloud-config-secret",
            ),
            *NO_CLOUD,
        ),
    ),
    "of another project": (
        lambda: Scene(secret={"kubeconfig": "token", "namespace": "other"}),
        (
            (
                "FAIL",
                f'{FIRST}: PROJECT: invalid value "here": must be "other", the key'
                " namespace of the Secret system/cloud",
            ),
            *NO_CLOUD,
        ),
    ),
    "a project of others": (
        lambda: Scene(
            secret={"kubeconfig": "token"}, env=[{"name": "PROJECT", "value": "there"}]
        ),
        (
            ("FAIL", f"{TITLE}: user u, project there: {DENIED.message}"),
            *NO_CLOUD,
        ),
    ),
    "both forms": (
        lambda: Scene(
            env=[
                {"name": "PROJECT", "value": "here"},
                {"name": "CREDENTIALS", "value": TOKEN},
            ]
        ),
        (
            (
                "FAIL",
                f"{FIRST}: CREDENTIALS: must not be set together with the file of"
                " Secret system/cloud, key kubeconfig",
            ),
            *NO_CLOUD,
        ),
    ),
    "rejected": (
        lambda: Scene(is_accepted=False),
        (("FAIL", f"{TITLE}: the credentials are rejected"), *NO_CLOUD),
    ),
    "no zones": (
        lambda: Scene(args=(*Scene().args, "--zones=")),
        (
            *VALID,
            ("WARN", f"{FIRST}: --zones: not set: must be zones of the cloud"),
            *REST,
        ),
    ),
    "the reference runs": (
        lambda: Scene(running=("Deployment old/manager",)),
        (
            *VALID,
            (
                "FAIL",
                "Deployment old/manager of the reference runs: must be stopped beside"
                " cloud-provider-x",
            ),
            REST[1],
        ),
    ),
    "a newer CRD": (
        lambda: Scene(versions=("v2", "v3")),
        (
            *VALID,
            REST[0],
            ("FAIL", "CRD shapes.example.com: served versions v2, v3: must include v1"),
            REST[1],
        ),
    ),
    "an unknown class": (
        lambda: Scene(names=("small", "huge")),
        (
            *VALID,
            REST[0],
            (
                "FAIL",
                'Shape s1: spec.class: unsupported value "huge": must be one of large,'
                " small, the Class objects of the cloud",
            ),
            REST[1],
        ),
    ),
    "classes that the user cannot list": (
        lambda: Scene(classes=DENIED),
        (
            *VALID,
            REST[0],
            ("WARN", f"Shape s0: spec.class: {DENIED.message}"),
            ("OK", "0 names in objects of the cluster exist"),
        ),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_defect_has_a_sentence(row: str) -> None:
    scene, expected = ROWS[row]
    lines = scene().results()
    for state, text in lines:
        print(f"{row:36} {state:5} {text}")
        assert TOKEN not in text
    assert lines == list(expected)


def test_a_secret_that_cannot_be_read_fails_no_check() -> None:
    scene = Scene()
    silent = kube_errors.Unavailable("no answer", operation="GET secret")
    scene.api.faults.append(calls.Fault(silent, resource="secrets"))
    assert scene.results()[0][0] == "SKIP"


def test_a_cluster_without_the_chart() -> None:
    (line,) = chart.results(fake_api.FakeApi(), Scene().expected(), 5)
    assert line.text == "skipped: no component of cloud-provider-x is installed"
