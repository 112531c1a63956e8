"""Completion in a real zsh and fish, which are unpacked Debian packages.

bash is part of every Debian: tests/cmd/mooring/completion_test.py.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import sys

import pytest

from lib.lab import places
from lib.lab.artifacts import debian_trees, pexes
from tests.harness import testing

PACKAGES = ("zsh", "zsh-common", "fish", "fish-common", "libpcre2-32-0")
FISH = 'mooring completion fish | source; complete -C "mooring $argv"'
ZSH = """
module_path=($TREE/usr/lib/*/zsh/*(/))
fpath=($TREE/usr/share/zsh/functions/**/*(/N))
autoload -Uz compinit && compinit -u -D
source <(mooring completion zsh)
_describe() { print -rl -- "${(@P)3}" }
compadd() { print -rl -- "${completions[@]}" }
words=(mooring "${(@s: :)LINE}")
CURRENT=$#words
_mooring_completion
"""
"""zsh completes on a terminal only: its two functions that show replies print them."""
ROWS: dict[str, set[str]] = {
    "pl": {"plan"},
    "get ": {"nodes", "services", "volumes"},
    "plan nodes --detailed": {"--detailed-exitcode"},
    "orphans -o ": {"table", "wide", "json", "yaml", "name"},
    "completion ": {"bash", "zsh", "fish"},
}


@pytest.fixture(scope="module")
def tree() -> pathlib.Path:
    """Return the folder with both shells."""
    if shutil.which("dpkg-deb") is None or shutil.which("apt-get") is None:
        pytest.skip("apt-get or dpkg-deb is absent: the shells are Debian packages")
    folder = places.default().cache / "shells"
    if not folder.is_dir():
        choose = debian_trees.with_missing(*PACKAGES)
        with testing.shown().step("zsh and fish") as step:
            debian_trees.unpack(folder, choose, os.environ, step)
    return folder


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_a_shell_completes_commands_options_and_values(
    shell: str, tree: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "mooring").symlink_to(pexes.beside(pexes.TOOL))
    env = {
        "HOME": str(tmp_path),
        "LD_LIBRARY_PATH": f"{tree}/usr/lib/{platform.machine()}-linux-gnu",
        "PATH": os.pathsep.join((str(tmp_path), os.environ["PATH"])),
        "PEX_PYTHON": sys.executable,
        "TREE": str(tree),
    }
    for line, expected in ROWS.items():
        words = {
            "fish": [f"{tree}/usr/bin/fish", "--no-config", "-c", FISH, line],
            "zsh": [f"{tree}/bin/zsh", "-f", "-c", ZSH],
        }[shell]
        done = subprocess.run(
            words,
            env={**env, "LINE": line},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        replies = {
            reply.partition("\t")[0].partition(":")[0]
            for reply in done.stdout.splitlines()
        }
        print(f"{shell:5} {line:22} {' '.join(sorted(replies))}")
        assert replies == expected, done.stderr
