"""A shell of a reader: commands of pages and of the tool, as a user types them."""

import dataclasses
import itertools
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.kube import control_plane
from lib.lab.run import waiting
from tests.harness.docs import pages


@dataclasses.dataclass
class UserShell:
    """Follows pages in a folder of its own. commands: those that were run."""

    folder: pathlib.Path
    env: Mapping[str, str]
    commands: list[str] = dataclasses.field(default_factory=list)

    def follow(
        self, page: str, section: str = "", allowed: Sequence[int] = (0,)
    ) -> str:
        """Run the commands of a page, or of one of its sections; return the output.

        allowed: exit codes.
        """
        output = []
        for block in pages.blocks(pathlib.Path(page)):
            if block.language or section not in ("", block.section):
                continue
            for command in block.commands():
                if not pages.reason(command) and not command.startswith(pages.LAB):
                    output.append(self.run(command, allowed))
        assert output, (page, section)
        return "\n".join(output)

    def run(self, command: str, allowed: Sequence[int] = (0,)) -> str:
        """Run one command as a user types it.

        Raises:
            AssertionError: its exit code is not among those allowed.
        """
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=dict(self.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=waiting.LIMIT_S,
            check=False,
        )
        print(f"$ {command}\n{done.stdout}")
        assert done.returncode in allowed, (command, done.stdout)
        self.commands.append(command)
        return done.stdout


def printed(steps: str, title: str) -> list[str]:
    """Return the commands below one of the steps that `mooring migrate` prints.

    Those of helm are on the page.
    """
    after = steps.partition(f". {title}")[2].splitlines()[1:]
    commands = itertools.takewhile(lambda line: line.startswith("     "), after)
    return [x for line in commands if not (x := line.strip()).startswith("helm ")]


def environment(folder: pathlib.Path, where: places.Places) -> Mapping[str, str]:
    """Return the environment of a user; programs and files are below a folder."""
    home = folder / "home"
    programs_ = folder / "bin"
    for needed in (programs_, home / ".local/bin"):
        needed.mkdir(parents=True)
    for name in ("kubectl", "helm"):
        (programs_ / name).symlink_to(programs.path(where, name))
    python = programs_ / "python3.11"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    shutil.copy(control_plane.admin_kubeconfig(where), folder / "admin.conf")
    shutil.copy(pexes.beside("mooring"), home / ".local/bin/mooring")
    (folder / "charts").symlink_to(pathlib.Path("charts").absolute())
    return {
        "HOME": str(home),
        "PATH": f"{programs_}:{home}/.local/bin:/usr/bin:/bin",
        "KUBECONFIG": str(folder / "admin.conf"),
        "KUBERC": "off",
        "PEX_ROOT": str(where.state / "pex"),
    }
