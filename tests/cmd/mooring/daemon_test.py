"""What the tool reads of a running daemon: defaults of options, and an idle Lease."""

import datetime
from typing import Any

import click
import pytest

from lib.kube import resources
from lib.kube.fake import api as fake_api
from mooring.commands import daemon, get, providers

OPENSTACK = providers.of("openstack")


def deployment(namespace: str, *args: str) -> dict[str, Any]:
    container = {
        "name": "ccm",
        "args": list(args),
        "env": [{"name": "CLUSTER_NAME", "value": "prod"}],
    }
    labels = {"app.kubernetes.io/name": "openstack-ccm"}
    about = {"name": "openstack-ccm", "namespace": namespace, "labels": labels}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"metadata": about, "spec": spec}


def lease(name: str, holder: str, age_s: float, namespace: str) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC)
    renewed = now - datetime.timedelta(seconds=age_s)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": renewed.isoformat().replace("+00:00", "Z"),
        "leaseTransitions": 1,
    }
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


@pytest.mark.parametrize(
    ("args", "option", "value"),
    [
        (("--cluster-name=prod",), "", "prod"),
        (("--cluster-name", "prod"), "", "prod"),
        (("--cluster-name=$(CLUSTER_NAME)",), "", "prod"),
        (("--cluster-name=prod",), "other", "other"),
        (("--v=2",), "", "kubernetes"),
        (None, "", "kubernetes"),
    ],
    ids=[
        "a flag of the Deployment",
        "in two words",
        "from a variable of the container",
        "an option of the user goes before it",
        "a Deployment without the flag",
        "no Deployment",
    ],
)
def test_an_option_is_by_default_the_daemons(
    args: tuple[str, ...] | None, option: str, value: str
) -> None:
    api = fake_api.FakeApi()
    if args is not None:
        api.put(resources.DEPLOYMENTS, deployment("kube-system", *args))
    manager = daemon.ManagerDeployment.of(OPENSTACK, api)
    assert manager.value("--cluster-name", option, "kubernetes") == value


def test_two_deployments_are_no_default() -> None:
    api = fake_api.FakeApi()
    for namespace in ("a", "b"):
        api.put(resources.DEPLOYMENTS, deployment(namespace, "--cluster-name=x"))
    assert daemon.ManagerDeployment.of(OPENSTACK, api).flags == {}


@pytest.mark.parametrize(
    ("holder", "age_s", "text"),
    [
        ("vm_1", 1.0, ""),
        ("vm_1", 30.0, ""),
        ("vm_1", 1044.0, "was last renewed 10"),
        ("", 30.0, ""),
        ("", 90.0, "is released"),
        (None, 0.0, ""),
    ],
    ids=[
        "a daemon that acts",
        "one that is being replaced",
        "a dead one",
        "one that is being updated",
        "one that was stopped",
        "no installation",
    ],
)
def test_a_cluster_that_nobody_serves_is_told(
    holder: str | None, age_s: float, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    api = fake_api.FakeApi()
    flags = ("--leader-elect-resource-name=own", "--leader-elect-resource-namespace=d8")
    api.put(resources.DEPLOYMENTS, deployment("d8", *flags))
    if holder is not None:
        api.put(resources.LEASES, lease("own", holder, age_s, "d8"))
    daemon.ManagerDeployment.of(OPENSTACK, api).warn_if_idle(api)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert text in shown.err
    expected = "no cloud controller manager acts: Lease d8/own" if text else ""
    assert shown.err.startswith(expected)
    assert bool(shown.err) is bool(text)


def test_get_lists_the_objects_that_are_named() -> None:
    rows = ["a/web", "b/web", "b/db"]

    def chosen(*names: str, namespace: str = "") -> list[str]:
        return get._chosen(rows, lambda row: [row], names, namespace)

    assert chosen() == rows
    assert chosen("web") == ["a/web", "b/web"]
    assert chosen("b/web") == ["b/web"]
    assert chosen("web", namespace="b") == ["b/web"]
    assert chosen(namespace="b") == ["b/web", "b/db"]
    with pytest.raises(click.ClickException, match="not found: nosuch"):
        chosen("web", "nosuch")
