"""Start of `mooring --help`, of completion and of one Tab: modules and memory.

No SDK of a cloud or of Kubernetes, and no package of the flows, is imported.
"""

import json
import os
import subprocess
import sys

import pytest

RUN = """
import json, sys
from mooring.commands import main
sys.argv = ["mooring", *sys.argv[1:]]
try:
    main.main()
except SystemExit as result:
    assert not result.code, result.code
with open("/proc/self/status") as file:
    peak_kb = int(file.read().partition("VmHWM:")[2].split()[0])
print(json.dumps([sorted(sys.modules), peak_kb]), file=sys.stderr)
"""
SDKS = ("openstack", "keystoneauth1", "kubernetes", "ovirtsdk4", "kopf", "urllib3")
FLOWS = ("lib.cloud", "lib.kube", "lib.nodes", "lib.balancers", "lib.osdpl")
MODULES_MAX = 280
"""A bound of what is imported: 241 at the time of writing."""
TAB = {
    "_MOORING_COMPLETE": "bash_complete",
    "COMP_WORDS": "mooring plan nodes --detailed",
    "COMP_CWORD": "3",
}
ROWS: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "mooring --help": (("--help",), {}, "Commands:"),
    "mooring completion bash": (("completion", "bash"), {}, "_mooring_completion"),
    "one Tab": ((), TAB, "plain,--detailed-exitcode"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_start_imports_no_sdk(row: str) -> None:
    words, variables, expected = ROWS[row]
    path = os.pathsep.join(folder for folder in sys.path if folder)
    env = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env={**env, **variables},
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    assert expected in done.stdout
    modules, peak_kb = json.loads(done.stderr.splitlines()[-1])
    print(f"{row:24} {len(modules)} modules, {peak_kb / 1024:.1f} MB")
    not_allowed = [
        name
        for name in modules
        if name.partition(".")[0] in SDKS
        or any(name == flow or name.startswith(f"{flow}.") for flow in FLOWS)
    ]
    assert not_allowed == []
    assert len(modules) <= MODULES_MAX
