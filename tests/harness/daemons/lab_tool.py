"""Runs the packaged tool, `mooring lab`, with a lab of its own."""

import dataclasses
import os
import shlex
import subprocess
from collections.abc import Mapping

from lib.lab import places
from lib.lab.artifacts import pexes


def environment(mine: places.Places, columns: int) -> Mapping[str, str]:
    """Return the environment of the tool with these places. columns: of a line.

    Without the variables of the PEX in which the test may run: the tool, which is a
    PEX, would print a warning about them.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith("__PEX_")}
    return {
        **own,
        **pexes.environment(mine),
        "XDG_CACHE_HOME": str(mine.cache.parent),
        "XDG_STATE_HOME": str(mine.state),
        "MOORING_LAB_PORT_BASE": str(mine.port_base),
        "COLUMNS": str(columns),
    }


@dataclasses.dataclass(frozen=True)
class LabTool:
    """The packaged tool. where: the places of its lab. limit_s: of one command."""

    where: places.Places
    env: Mapping[str, str]
    limit_s: float

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the arguments that run `mooring lab`."""
        return (*pexes.command(pexes.beside(pexes.TOOL)), "lab", *words)

    def shown(self, *words: str) -> str:
        """Return the same as one text for a shell."""
        return shlex.join(self.command(*words))

    def run(self, *words: str) -> tuple[int, str]:
        """Run `mooring lab`; return its exit code and what it printed."""
        done = subprocess.run(
            self.command(*words),
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.limit_s,
            check=False,
        )
        print(done.stdout)
        assert "Traceback" not in done.stdout
        return done.returncode, done.stdout
