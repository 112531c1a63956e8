"""Places of a lab in a temporary folder, and a Go toolchain that only pretends."""

import os
import pathlib
import tempfile
import textwrap
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import published_programs
from lib.lab.run import ports
from lib.lab.slots import slots

BLOCKS = 9


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> Iterator[places.Places]:
    """Return places whose ports are free, and that no other test process uses."""
    root = pathlib.Path(tempfile.gettempdir(), f"mooring-test-ports-{os.getuid()}")

    def base(slot: slots.Slot) -> int:
        return 21000 + 100 * slot.number

    def refuse(slot: slots.Slot) -> None:
        lab = places.Places(tmp_path, tmp_path, base(slot))
        ports.require(lab, [(name, name) for name in lab.ports()])

    slot = slots.take(root, range(BLOCKS), refuse, lambda: None)
    yield places.Places(tmp_path / "cache", tmp_path / "state", base(slot))
    slot.release()


@pytest.fixture()
def pretended_go(tmp_path: pathlib.Path) -> dict[str, str]:
    """Environment whose `go` notes its calls in $HOME/calls and "builds" immediately.

    Give it GO_SAYS to fail a build with, or GO_VERSION to be another release.
    """
    folder = tmp_path / "go-bin"
    folder.mkdir()
    script = folder / "go"
    script.write_text(
        textwrap.dedent(
            """\
            #!/bin/sh
            echo "$1" >> "$HOME/calls"
            case "$1" in
            env) echo "${GO_VERSION:-go99.1.0}" ;;
            list)
              echo "go: downloading example.org/x v1.0.0"
              echo "true stale dependency: y"
              echo "true build ID mismatch"
              echo "true not installed but available in build cache"
              echo "false " ;;
            build)
              [ -z "$GO_SAYS" ] || { echo "$GO_SAYS"; exit 1; }
              echo x; echo y
              while [ "$1" != -o ]; do shift; done
              out="$2"; shift 2
              for package; do
                name="${package##*/}"
                [ "$name" != v3 ] || name=server
                echo "built from $package" > "$out$name"
              done ;;
            esac
            """
        )
    )
    script.chmod(0o755)
    return {
        "PATH": f"{folder}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        published_programs.COMPILE: "1",
    }
