"""The command line as a whole: all problems are reported together."""

import os
import pathlib
import subprocess
import sys

from cloud_data_discoverer import main


def run(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    root = pathlib.Path(main.__file__).parents[1]
    path = os.pathsep.join([str(root), str(root.parent)])
    return subprocess.run(
        [sys.executable, "-m", "cloud_data_discoverer.main", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "PYTHONPATH": path, **env},
    )


def test_problems_of_flags_and_environment_are_reported_together() -> None:
    """Also where one of the flags can't be read at all."""
    words = ("--discovery-period=soon", "--listen-address=0.0.0.0:80")
    ended = run(*words, MODULE_CONFIG="{")
    assert ended.returncode == 2
    fields = [line.split(": ")[1] for line in ended.stderr.splitlines()]
    assert sorted(fields) == [
        "--cloud",
        "--discovery-period",
        "--kubeconfig",
        "--listen-address",
        "MODULE_CONFIG",
        "OS_AUTH_URL",
        "OS_DOMAIN_NAME",
        "OS_PASSWORD",
        "OS_REGION",
        "OS_TENANT_ID",
        "OS_USERNAME",
    ]


def test_the_module_itself_starts_the_program() -> None:
    """`python -m cloud_data_discoverer.main` is not silent."""
    assert run("--version").stdout.startswith("cloud-data-discoverer ")
