"""The program as it is started without its PEX file."""

import os
import pathlib
import subprocess
import sys

from openstack_ccm import main


def test_the_module_itself_starts_the_program() -> None:
    """`python -m openstack_ccm.main` is not silent."""
    root = pathlib.Path(main.__file__).parents[1]
    path = os.pathsep.join([str(root), str(root.parent)])
    ended = subprocess.run(
        [sys.executable, "-m", "openstack_ccm.main", "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert ended.returncode == 0
    assert ended.stdout.startswith("openstack-ccm ")
