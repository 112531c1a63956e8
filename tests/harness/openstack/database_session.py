"""A connection to the lab's database that is asked again and again.

Apart from `database.py`, by which it is known what a fresh database holds.
"""

import os
import subprocess
from types import TracebackType

from lib.lab import errors
from lib.lab.artifacts import debian
from lib.lab.openstack import install, layout

_END = "end of the answer"


class Session:
    """Open while its block lasts. For one thread."""

    def __init__(self, home: layout.Layout) -> None:
        tree = home.install.mariadb
        self._process = subprocess.Popen(
            [
                *(tree / "usr/bin/mariadb", "--no-defaults", "--user=root"),
                *("--protocol=tcp", "--host=127.0.0.1"),
                f"--port={home.port(layout.DATABASE)}",
                *("--batch", "--skip-column-names", "--unbuffered"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=debian.environment(tree, install.clean(os.environ)),
            text=True,
        )

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def ask(self, query: str) -> tuple[tuple[str, ...], ...]:
        """Return the rows that answer a query.

        Raises:
            LabError: the database has hung up.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise TypeError("the client was started without pipes")
        rows: list[tuple[str, ...]] = []
        try:
            self._process.stdin.write(f"{query}; SELECT '{_END}';\n")
            self._process.stdin.flush()
        except OSError as error:
            raise errors.LabError("the lab's database has hung up") from error
        for line in self._process.stdout:
            row = line.rstrip("\n")
            if row == _END:
                return tuple(rows)
            rows.append(tuple(row.split("\t")))
        raise errors.LabError("the lab's database has hung up")
