"""Values of helm releases, computed in a new process: processor time and memory.

The limits are those of issue osdpl-core for 17 releases; two clouds have 24. The
reference needs 2.3 to 2.7 s and 106 MiB for one.
"""

import json
import subprocess
import sys

CPU_MAX_S = 0.3
MEMORY_MAX_MIB = 80
RELEASES_MIN = 17

PROGRAM = """
import json, resource, time
started = time.monotonic()
from lib.osdpl.api import hashing
from tests.lib.osdpl import samples
hashes = [
    hashing.release_hash(release, "sha256:0")
    for size in ("tiny", "medium")
    for bundle in samples.rendered(size=size).bundles
    for release in bundle.releases
]
# ru_maxrss would be that of the process before exec.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "releases": len(set(hashes)),
    "seconds": round(time.monotonic() - started, 3),
    "cpu_s": round(used.ru_utime + used.ru_stime, 3),
    "memory_mib": int(status["VmHWM"].split()[0]) // 1024,
}))
"""


def measure() -> dict[str, float]:
    """Return the figures of one cold run."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures


def test_values_of_a_cold_process() -> None:
    runs = [measure() for _ in range(3)]

    print("releases  cpu_s  seconds  MiB")
    for run in runs:
        print(
            f"{run['releases']:8} {run['cpu_s']:6} {run['seconds']:8}"
            f" {run['memory_mib']:4}"
        )
    best = min(runs, key=lambda run: run["cpu_s"])
    assert best["releases"] >= RELEASES_MIN
    assert best["cpu_s"] <= CPU_MAX_S
    assert best["memory_mib"] <= MEMORY_MAX_MIB
