"""Imports that go the wrong way are refused, with one example of each.

The rules stand in `lib/BUILD` and `cmd/BUILD`; `./pants check ::` applies them to every
file. Here Pants' own code applies them to examples, and Pants itself to one of them.
"""

import json
import os
import pathlib
import platform
import shutil
import subprocess

import pytest

VISIBILITY = "pants.backend.experimental.visibility"
PANTS_TOML = """[GLOBAL]
pants_version = "{version}"
backend_packages = ["{visibility}", "pants.backend.python"]
[source]
root_patterns = ["/"]
[python]
interpreter_constraints = ["CPython==3.11.*"]
[python-infer]
use_rust_parser = true
[anonymous-telemetry]
enabled = false
"""
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
    "an edge imports a flow": ("lib/csi/driver.py", "lib/volumes/flow.py"),
    "a component imports a provider": (
        "cmd/openstack_ccm/main.py",
        "lib/cloud/openstack/client.py",
    ),
}


def pants_version() -> str:
    ours = pathlib.Path("pants.toml").read_text()
    assert VISIBILITY in ours
    return ours.partition('pants_version = "')[2].partition('"')[0]


def pants_python() -> pathlib.Path:
    """Return the Python of the environment in which ./pants sets Pants up."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    setup = pathlib.Path(os.environ.get("PANTS_SETUP_CACHE") or cache / "pants-pypi")
    found = setup.glob(f"{pants_version()}-*-{platform.machine()}/bin/python")
    return max(found)


def test_examples_are_refused_and_others_allowed() -> None:
    examples = DENIED | ALLOWED
    done = subprocess.run(
        [pants_python(), "tests/layout/judge_imports.py"],
        input=json.dumps(list(examples.values())),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    judged = dict(zip(examples, json.loads(done.stdout), strict=True))
    for name, (action, rule) in judged.items():
        print(f"{action:6} {name:36} {rule}")
    assert {name for name, (action, _) in judged.items() if action == "deny"} == set(
        DENIED
    )


@pytest.fixture()
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A flow that imports a provider, in a tree with our rules for `lib`."""
    text = PANTS_TOML.format(version=pants_version(), visibility=VISIBILITY)
    (tmp_path / "pants.toml").write_text(text)
    flow, provider = DENIED["a flow imports a provider"]
    sources = {provider: "", flow: "from lib.cloud.openstack import client\n"}
    for path, source in sources.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True)
        file.write_text(source)
        (file.parent / "BUILD").write_text("python_sources()\n")
    shutil.copy("lib/BUILD", tmp_path / "lib/BUILD")
    shutil.copy("pants", tmp_path / "pants")
    return tmp_path


def test_pants_refuses_a_flow_that_imports_a_provider(tree: pathlib.Path) -> None:
    flow, provider = DENIED["a flow imports a provider"]
    done = subprocess.run(
        ["./pants", "dependencies", flow],
        cwd=tree,
        # No daemon stays behind, and another Pants may run at the same time.
        env={**os.environ, "PANTS_PANTSD": "false", "PANTS_CONCURRENT": "true"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    output = done.stdout + done.stderr
    print(output)
    assert done.returncode != 0
    assert f"{flow} has 1 dependency violation" in output
    assert f"python_sources {flow} -> python_sources {provider}" in output
