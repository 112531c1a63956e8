"""Which Secret a Deployment mounts as its cloud.conf, and each failure of that."""

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from lib.doctor import deployed
from lib.kube import errors, resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.process import config

USUAL = ("cloud.conf", "cloud-config")
SECRET = "s3cret-of-the-cloud"
CONF = f"[Global]\npassword = {SECRET}\n"
FLAG = "--cloud-config=/etc/config/cloud.conf"


def volume(**secret: object) -> Mapping[str, object]:
    return {"name": "config", "secret": {"secretName": "cloud", **secret}}


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A Deployment and a Secret. args: of its container; None: no Deployment."""

    args: tuple[str, ...] | None = ("--v=2", FLAG)
    command: tuple[str, ...] = ()
    mount: Mapping[str, object] = dataclasses.field(
        default_factory=lambda: {"name": "config", "mountPath": "/etc/config"}
    )
    volume: Mapping[str, object] = dataclasses.field(default_factory=volume)
    keys: tuple[str, ...] | None = ("cloud.conf", "ca.pem")
    namespaces: tuple[str, ...] = ("kube-system",)

    def api(self) -> fake_api.FakeApi:
        api = fake_api.FakeApi()
        for namespace in self.namespaces if self.args is not None else ():
            api.put(resources.DEPLOYMENTS, self.deployment(namespace))
        if self.keys is not None:
            data = {key: base64.b64encode(CONF.encode()).decode() for key in self.keys}
            about = {"name": "cloud", "namespace": "kube-system"}
            api.put(resources.SECRETS, {"metadata": about, "data": data})
        return api

    def deployment(self, namespace: str) -> dict[str, Any]:
        container = {
            "name": "ccm",
            "command": list(self.command),
            "args": list(self.args or ()),
            "volumeMounts": [{"name": "tmp", "mountPath": "/etc"}, self.mount],
        }
        tmp: Mapping[str, object] = {"name": "tmp", "emptyDir": {}}
        pod = {"containers": [container], "volumes": [tmp, self.volume]}
        labels = {"app.kubernetes.io/name": "openstack-ccm"}
        about = {"name": "openstack-ccm", "namespace": namespace, "labels": labels}
        return {"metadata": about, "spec": {"template": {"spec": pod}}}


def read(api: fake_api.FakeApi) -> deployed.CloudFiles:
    return deployed.read(api, deployed.find(api, "openstack-ccm", 5), USUAL, 5)


MOUNTED = {
    "a key of a mounted Secret": Cluster(),
    "the value of the flag is the next argument": Cluster(
        args=("--cloud-config", "/etc/config/cloud.conf")
    ),
    "the flag is in the command": Cluster(args=(), command=("ccm", FLAG)),
    "a key with a path of its own": Cluster(
        args=("--cloud-config=/etc/config/my.conf",),
        volume=volume(items=[{"key": "cloud.conf", "path": "my.conf"}]),
    ),
    "the kubeconfig of a parent": Cluster(
        args=("--parent-kubeconfig=/etc/config/cloud.conf",)
    ),
    "one key mounted as a file": Cluster(
        mount={
            "name": "config",
            "mountPath": "/etc/config/cloud.conf",
            "subPath": "cloud.conf",
        },
    ),
}


@pytest.mark.parametrize("row", MOUNTED)
def test_the_secret_that_is_mounted_is_read_with_two_calls(row: str) -> None:
    api = MOUNTED[row].api()
    files = read(api)
    assert files.content.decode() == CONF
    assert files.title == "Secret kube-system/cloud, key cloud.conf"
    assert [(call.verb, call.resource) for call in api.calls] == [
        ("list", "deployments"),
        ("get", "secrets"),
    ]
    assert SECRET not in repr(files)


def test_other_keys_are_files_of_the_same_folder() -> None:
    files = read(Cluster().api())
    assert set(files.files) == {"/etc/config/cloud.conf", "/etc/config/ca.pem"}


def test_variables_have_their_values_from_the_secret() -> None:
    """Those of other Secrets are not known."""
    cluster = Cluster(keys=("cloud.conf", "namespace"))
    document = cluster.deployment("kube-system")
    refs = {
        "A": ("cloud", "namespace"),
        "B": ("other", "namespace"),
        "C": ("cloud", ""),
    }
    document["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "PLAIN", "value": "1"},
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": of, "key": key}}}
            for name, (of, key) in refs.items()
        ),
    ]
    api = dataclasses.replace(cluster, args=None).api()
    api.put(resources.DEPLOYMENTS, document)
    files = read(api)
    assert files.variables == {"PLAIN": "1", "A": CONF}
    assert set(files.keys) == {"cloud.conf", "namespace"}
    assert SECRET not in repr(files)


BY_VARIABLES = {
    "the value is a key of a Secret": {
        "name": "ENGINE_URL",
        "valueFrom": {"secretKeyRef": {"name": "cloud", "key": "server"}},
    },
    "the value is the path of a mounted file": {
        "name": "ENGINE_URL_FILE",
        "value": "/etc/config/server",
    },
}


@pytest.mark.parametrize("row", BY_VARIABLES)
def test_a_deployment_without_the_flag_names_its_secret_by_variables(row: str) -> None:
    cluster = Cluster(args=("--v=2",), keys=("server", "password"))
    document = cluster.deployment("kube-system")
    env = [{"name": "PLAIN", "value": "1"}, BY_VARIABLES[row]]
    document["spec"]["template"]["spec"]["containers"][0]["env"] = env
    api = dataclasses.replace(cluster, args=None).api()
    api.put(resources.DEPLOYMENTS, document)
    where = deployed.find(api, "openstack-ccm", 5, ("ENGINE_URL",))
    files = deployed.read(api, where, ("server",), 5)
    assert files.title == "Secret kube-system/cloud, key server"
    assert set(files.keys) == {"server", "password"}
    with pytest.raises(config.ConfigError, match="no container has --cloud-config"):
        deployed.find(api, "openstack-ccm", 5)


FAILURES = {
    "no Deployment": (
        Cluster(args=None),
        "no Deployment has the label app.kubernetes.io/name=",
    ),
    "two Deployments": (
        Cluster(namespaces=("a", "b")),
        "several Deployments have the label app.kubernetes.io/name=openstack-ccm"
        " (a/openstack-ccm, b/openstack-ccm)",
    ),
    "no flag": (Cluster(args=()), "no container has --cloud-config"),
    "two files": (Cluster(args=(FLAG, FLAG)), "several --cloud-config: must be one"),
    "no Secret is mounted": (
        Cluster(volume={"name": "config", "hostPath": {"path": "/etc"}}),
        "must be in a volume of type secret",
    ),
    "the Secret is missing": (
        Cluster(keys=None),
        "Secret kube-system/cloud, key cloud.conf: not found",
    ),
    "the key is missing": (
        Cluster(keys=("other",)),
        "Secret kube-system/cloud: key cloud.conf not found: the Secret has other",
    ),
    "an empty Secret": (Cluster(keys=()), "the Secret has none"),
}


@pytest.mark.parametrize("row", FAILURES)
def test_each_failure_has_a_message(row: str) -> None:
    cluster, text = FAILURES[row]
    with pytest.raises(config.ConfigError) as caught:
        read(cluster.api())
    print(f"{row:24} {caught.value}")
    assert str(caught.value).startswith("--cloud-config: ")
    assert text in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("resource", ["deployments", "secrets"])
def test_a_denied_read_names_the_permission(resource: str) -> None:
    api = Cluster().api()
    forbidden = errors.Forbidden("no", operation="GET", status=403)
    api.faults.append(calls.Fault(forbidden, resource=resource))
    with pytest.raises(config.ConfigError) as caught:
        read(api)
    print(caught.value)
    assert "permission denied" in str(caught.value)
    assert resource in str(caught.value)


def test_a_value_that_is_not_base64_is_not_shown() -> None:
    api = Cluster(keys=None).api()
    about = {"name": "cloud", "namespace": "kube-system"}
    data = {"cloud.conf": f"!{SECRET}"}
    api.put(resources.SECRETS, {"metadata": about, "data": data})
    with pytest.raises(config.ConfigError) as caught:
        read(api)
    assert str(caught.value).endswith("key cloud.conf: not base64")


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (("only",), "only"),
        (("a", "cloud-config"), "cloud-config"),
        (("cloud-config", "cloud.conf"), "cloud.conf"),
    ],
)
def test_the_key_may_be_omitted(keys: tuple[str, ...], chosen: str) -> None:
    api = Cluster(keys=keys).api()
    files = deployed.read(api, deployed.parse("kube-system/cloud"), USUAL, 5)
    assert files.title == f"Secret kube-system/cloud, key {chosen}"
    assert not files.files


def test_a_key_must_be_named_when_several_are_unusual() -> None:
    api = Cluster(keys=("a", "b")).api()
    with pytest.raises(config.ConfigError) as caught:
        deployed.read(api, deployed.parse("kube-system/cloud"), USUAL, 5)
    assert "key cloud.conf or cloud-config not found: the Secret has a, b" in str(
        caught.value
    )


@pytest.mark.parametrize("text", ["cloud", "a/b/c/d", "/cloud", "a/", "a/b/"])
def test_a_malformed_name_is_rejected(text: str) -> None:
    with pytest.raises(config.ConfigError) as caught:
        deployed.parse(text)
    assert str(caught.value).startswith(
        f'--cloud-config-secret: invalid value "{text}": must be NAMESPACE/NAME'
    )


def test_a_key_is_part_of_the_name() -> None:
    assert str(deployed.parse("a/b/c")) == "Secret a/b, key c"
