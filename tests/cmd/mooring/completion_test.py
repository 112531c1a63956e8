"""Completion in a real bash, the name of the program, and `mooring version`."""

import json
import os
import pathlib
import platform
import subprocess
import sys

import pytest

from lib.lab.whole import record
from mooring.commands import completion, version
from tests.harness.daemons.tool import mooring

SCRIPT = f"#!{sys.executable}\nfrom mooring.commands import main\nmain.main()\n"
COMPLETE = """
source <(mooring completion bash)
COMP_WORDS=(mooring "$@"); COMP_CWORD=$#
_mooring_completion mooring
printf "%s\\n" "${COMPREPLY[@]}"
"""
ROWS: dict[tuple[str, ...], set[str]] = {
    ("pl",): {"plan"},
    ("get", ""): {"nodes", "services", "volumes"},
    ("plan", "nodes", "--detailed"): {"--detailed-exitcode"},
    ("orphans", "-o", ""): {"table", "wide", "json", "yaml", "name"},
    ("completion", ""): {"bash", "zsh", "fish"},
    ("lab", "server", "stop", "mooring-lab-"): set(record.NAMES),
}


def environment(folder: pathlib.Path) -> dict[str, str]:
    path = os.pathsep.join(name for name in sys.path if name)
    programs = os.pathsep.join((str(folder), os.environ["PATH"]))
    return {"HOME": str(folder), "PATH": programs, "PYTHONPATH": path}


def installed(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Install the tool as a program of this name."""
    file = folder / name
    file.write_text(SCRIPT)
    file.chmod(0o755)
    return file


def output(folder: pathlib.Path, *words: str) -> str:
    return subprocess.run(
        words,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    ).stdout


def test_bash_completes_commands_options_and_values(tmp_path: pathlib.Path) -> None:
    installed(tmp_path, "mooring")
    for words, expected in ROWS.items():
        replies = output(tmp_path, "bash", "-c", COMPLETE, "bash", *words).split()
        print(f"{' '.join(words):28} {' '.join(replies)}")
        assert set(replies) == expected


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_has_a_script(shell: str) -> None:
    done = mooring("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_MOORING_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("name", "title"), [("mooring", "mooring"), ("kubectl-mooring", "kubectl mooring")]
)
def test_help_has_the_name_that_was_typed(
    tmp_path: pathlib.Path, name: str, title: str
) -> None:
    file = str(installed(tmp_path, name))
    assert output(tmp_path, file, "get", "-h").startswith(f"Usage: {title} get ")


def test_the_version_is_printed_in_each_format() -> None:
    done = mooring("version", "-o", "json")
    (entry,) = json.loads(done.stdout)["components"]
    assert entry["component"] == "mooring"
    assert entry["version"] == version.VERSION
    assert entry["python"] == platform.python_version()
    assert mooring("version", "-o", "name").stdout == "component/mooring\n"
    for words in (("version",), ("--version",), ("-V",)):
        assert version.VERSION in mooring(*words).stdout


@pytest.mark.parametrize(
    ("words", "first", "code"),
    [
        ((), "Usage: mooring [OPTIONS] COMMAND", 0),
        (("plan", "services"), "Usage: mooring plan services", 0),
        (("plan", "service"), "Usage: mooring plan", 2),
    ],
    ids=["of the tool", "of a command", "a command that does not exist"],
)
def test_help_is_a_command_too(words: tuple[str, ...], first: str, code: int) -> None:
    done = mooring("help", *words)
    assert (done.stdout or done.stderr).startswith(first)
    assert done.returncode == code
