"""Imports that go the wrong way are refused, with one example of each.

The rules stand in `lib/BUILD` and `cmd/BUILD`; `./pants check ::` applies them to every
file. Here Pants' own code applies them to examples; walls_pants_test.py runs Pants.
"""

import json
import os
import pathlib
import platform
import subprocess

DENIED = {
    "a flow imports a provider": (
        "lib/nodes/decide.py",
        "lib/cloud/openstack/client.py",
    ),
    "a flow imports a fake provider": (
        "lib/volumes/flow.py",
        "lib/cloud/fake/volumes.py",
    ),
    "a flow imports another": ("lib/balancers/decide.py", "lib/nodes/labels.py"),
    "a provider imports another": (
        "lib/cloud/fake/volumes.py",
        "lib/cloud/openstack/client.py",
    ),
    "DVP imports OpenStack": (
        "lib/cloud/dvp/parent.py",
        "lib/cloud/openstack/client.py",
    ),
    "a flow imports DVP": ("lib/balancers/decide.py", "lib/cloud/dvp/parent.py"),
    "the manager of all clouds imports DVP": (
        "lib/ccm/manager.py",
        "lib/cloud/dvp/parent.py",
    ),
    "values of OpenStackDeployments import their flow": (
        "lib/osdpl/values/render.py",
        "lib/osdpl/reconcile/snapshot.py",
    ),
    "values of OpenStackDeployments import the rules": (
        "lib/osdpl/values/services/compute.py",
        "lib/osdpl/rules/table.py",
    ),
    "the daemon of OpenStackDeployments imports the doctor": (
        "lib/osdpl/daemon/controller.py",
        "lib/osdpl/doctor/findings.py",
    ),
    "a layer of OpenStackDeployments imports another flow": (
        "lib/osdpl/reconcile/decide.py",
        "lib/nodes/labels.py",
    ),
    "a provider imports a flow": (
        "lib/cloud/openstack/cloud.py",
        "lib/nodes/decide.py",
    ),
    "a flow imports what providers share": (
        "lib/nodes/decide.py",
        "lib/cloud/support/parallel.py",
    ),
    "what providers share imports a provider": (
        "lib/cloud/support/circuits.py",
        "lib/cloud/openstack/client.py",
    ),
    "the vocabulary imports a provider": (
        "lib/cloud/model.py",
        "lib/cloud/openstack/client.py",
    ),
    "the runtime imports the vocabulary": ("lib/kube/client.py", "lib/cloud/model.py"),
    "a neutral package imports the lab": ("lib/kube/client.py", "lib/lab/run/ports.py"),
    "the lab's start imports one cloud": (
        "lib/lab/whole/whole.py",
        "lib/lab/openstack/lab.py",
    ),
    "the lab's Kubernetes imports one cloud": (
        "lib/lab/kube/kubelet.py",
        "lib/lab/openstack/layout.py",
    ),
    "a cloud of the lab imports another": (
        "lib/lab/dvp/parent.py",
        "lib/lab/openstack/layout.py",
    ),
    "zVirt imports OpenStack": (
        "lib/cloud/zvirt/client.py",
        "lib/cloud/openstack/client.py",
    ),
    "a flow imports zVirt": ("lib/volumes/flow.py", "lib/cloud/zvirt/client.py"),
    "the simulated engine imports the provider that it judges": (
        "lib/lab/zvirt/core.py",
        "lib/cloud/zvirt/client.py",
    ),
    "the lab's start imports the simulated engine": (
        "lib/lab/whole/whole.py",
        "lib/lab/zvirt/core.py",
    ),
    "another provider imports the SDK of oVirt": (
        "lib/cloud/dvp/parent.py",
        "3rdparty/python#ovirt-engine-sdk-python",
    ),
    "a flow imports the SDK of oVirt": (
        "lib/volumes/flow.py",
        "3rdparty/python#ovirt-engine-sdk-python",
    ),
    "a component imports the SDK of oVirt": (
        "cmd/csi_node/zvirt_node.py",
        "3rdparty/python#ovirt-engine-sdk-python",
    ),
    "the edge of CSI imports a provider": (
        "lib/csi/driver.py",
        "lib/cloud/openstack/client.py",
    ),
    "a library imports a component": ("lib/ccm/manager.py", "cmd/mooring/edge.py"),
    "a component imports another": (
        "cmd/openstack_ccm/main.py",
        "cmd/csi_controller/version.py",
    ),
}
ALLOWED = {
    "a flow imports the vocabulary": ("lib/nodes/decide.py", "lib/cloud/model.py"),
    "a provider imports the vocabulary": (
        "lib/cloud/openstack/client.py",
        "lib/cloud/errors.py",
    ),
    "a provider imports what providers share": (
        "lib/cloud/openstack/client.py",
        "lib/cloud/support/circuits.py",
    ),
    "the lab's cloud implements its protocol": (
        "lib/lab/openstack/grounds.py",
        "lib/lab/grounds/grounds.py",
    ),
    "zVirt imports the SDK of oVirt": (
        "lib/cloud/zvirt/client.py",
        "3rdparty/python#ovirt-engine-sdk-python",
    ),
    "the simulated engine imports the SDK of oVirt": (
        "lib/lab/zvirt/core.py",
        "3rdparty/python#ovirt-engine-sdk-python",
    ),
    "the flow of OpenStackDeployments imports their values": (
        "lib/osdpl/reconcile/desire.py",
        "lib/osdpl/values/services/compute.py",
    ),
    "an edge imports a flow": ("lib/csi/driver.py", "lib/volumes/flow.py"),
    "a component imports a provider": (
        "cmd/openstack_ccm/main.py",
        "lib/cloud/openstack/client.py",
    ),
}


def pants_version() -> str:
    pants_toml = pathlib.Path("pants.toml").read_text()
    return pants_toml.partition('pants_version = "')[2].partition('"')[0]


def pants_python() -> pathlib.Path:
    """Return the Python of the environment in which ./pants sets Pants up."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    setup = pathlib.Path(os.environ.get("PANTS_SETUP_CACHE") or cache / "pants-pypi")
    interpreters = setup.glob(f"{pants_version()}-*-{platform.machine()}/bin/python")
    return max(interpreters)


def test_examples_are_refused_and_others_allowed() -> None:
    examples = DENIED | ALLOWED
    done = subprocess.run(
        [pants_python(), "tests/layout/judge_imports.py"],
        input=json.dumps(list(examples.values())),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    judged = dict(zip(examples, json.loads(done.stdout), strict=True))
    for name, (action, rule) in judged.items():
        print(f"{action:6} {name:36} {rule}")
    assert {name for name, (action, _) in judged.items() if action == "deny"} == set(
        DENIED
    )
