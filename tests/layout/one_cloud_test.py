"""A process of several clouds imports the package of the requested one alone."""

import subprocess
import sys

import pytest

from cloud_data_discoverer import main as discoverer
from csi_controller import main as csi_controller
from csi_node import main as csi_node

PROGRAMS = {
    "csi_controller": tuple(csi_controller.PROVIDERS),
    "csi_node": tuple(csi_node.PROVIDERS),
    "cloud_data_discoverer": tuple(discoverer.PROVIDERS),
}
CASES = [(program, cloud) for program, clouds in PROGRAMS.items() for cloud in clouds]
CLOUDS = ("openstack", "dvp", "zvirt")
SCRIPT = """
import contextlib, sys
from {program} import main
from lib.process import config, flags
words = [{words}]
with contextlib.suppress(config.ConfigError):
    main.judge(flags.parse(main.FLAGS, words))
names = {{name.split(".")[2] for name in sys.modules if name.startswith("lib.cloud.")}}
print(*sorted(names & {clouds!r}))
"""
WORDS = {
    "csi_controller": "'--endpoint=unix:///tmp/csi.sock'",
    "csi_node": "'--endpoint=unix:///tmp/csi.sock', '--node-name=n'",
    "cloud_data_discoverer": "",
}


@pytest.mark.parametrize(("program", "cloud"), CASES)
def test_only_the_requested_cloud_is_imported(program: str, cloud: str) -> None:
    words = f"'--cloud={cloud}', {WORDS[program]}"
    script = SCRIPT.format(program=program, words=words, clouds=set(CLOUDS))
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={"PYTHONPATH": ":".join(part for part in sys.path if part)},
    )
    assert done.returncode == 0, done.stderr
    print(f"{program:24} {cloud:10} imports {done.stdout.strip() or 'none'}")
    assert set(done.stdout.split()) <= {cloud}
