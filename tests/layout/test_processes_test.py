"""How many processes `./pants` runs in parallel: by tier, cores, load and memory."""

import pathlib
import subprocess

import pytest

SCRIPT = "build-support/processes.sh"
# Tier, cores, load of one minute, available memory in GB, and the processes.
CASES = {
    "two idle cores": ("test", 2, 0.1, 20, 3),
    "the long tier": ("long", 2, 0.1, 20, 4),
    "beside the end of an earlier run": ("test", 2, 5.9, 20, 3),
    "beside three busy programs for each core": ("test", 2, 6.0, 20, 1),
    "the long tier on a busy machine": ("long", 2, 35.7, 20, 2),
    "one core": ("test", 1, 0.0, 20, 1),
    "one busy core": ("test", 1, 9.0, 20, 1),
    "eight cores": ("test", 8, 4.0, 60, 12),
    "eight cores, little memory": ("test", 8, 4.0, 8, 2),
    "hardly any memory": ("test", 2, 0.0, 1, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_processes_follow_the_load_and_the_memory_at_the_start(
    case: str, tmp_path: pathlib.Path
) -> None:
    tier, cores, load, available_gb, expected = CASES[case]
    loadavg, meminfo = tmp_path / "loadavg", tmp_path / "meminfo"
    loadavg.write_text(f"{load:.2f} 1.00 1.00 3/400 1234\n")
    kib = available_gb * 1_000_000
    meminfo.write_text(f"MemTotal: {2 * kib} kB\nMemAvailable:   {kib} kB\n")
    shown = subprocess.run(
        [SCRIPT, tier, str(cores), str(loadavg), str(meminfo)],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    ).stdout.strip()
    print(f"{case:44} {shown}")
    assert int(shown) == expected


def test_a_machine_that_shows_neither_has_the_usual_number(
    tmp_path: pathlib.Path,
) -> None:
    missing = str(tmp_path / "missing")
    words = [SCRIPT, "test", "2", missing, missing]
    shown = subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=900
    ).stdout
    assert shown == "3\n"
