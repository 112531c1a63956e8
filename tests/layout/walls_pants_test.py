"""A flow that imports a provider is refused by Pants itself; walls_test.py has more.

In the long tier: Pants takes 20 s of the processor to start.
"""

import os
import pathlib
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
FLOW, PROVIDER = "lib/nodes/decide.py", "lib/cloud/openstack/client.py"


def pants_version() -> str:
    pants_toml = pathlib.Path("pants.toml").read_text()
    assert VISIBILITY in pants_toml
    return pants_toml.partition('pants_version = "')[2].partition('"')[0]


@pytest.fixture()
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A flow that imports a provider, in a tree with our rules for `lib`."""
    text = PANTS_TOML.format(version=pants_version(), visibility=VISIBILITY)
    (tmp_path / "pants.toml").write_text(text)
    sources = {PROVIDER: "", FLOW: "from lib.cloud.openstack import client\n"}
    for path, source in sources.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True)
        file.write_text(source)
        (file.parent / "BUILD").write_text("python_sources()\n")
    shutil.copy("lib/BUILD", tmp_path / "lib/BUILD")
    for name in (
        "pants",
        "build-support/headers.sh",
        "build-support/headers_env.sh",
        "build-support/processes.sh",
        "build-support/sandboxes.sh",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(name, tmp_path / name)
    return tmp_path


def test_pants_refuses_a_flow_that_imports_a_provider(tree: pathlib.Path) -> None:
    done = subprocess.run(
        ["./pants", "dependencies", FLOW],
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
    assert f"{FLOW} has 1 dependency violation" in output
    assert f"python_sources {FLOW} -> python_sources {PROVIDER}" in output
