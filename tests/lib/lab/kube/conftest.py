"""Places of a lab in a temporary folder, and a Go toolchain that only pretends."""

import os
import pathlib
import textwrap

import pytest

from lib.lab import places, ports


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> places.Places:
    """Places whose ports are all free."""
    base = 21000 + 100 * int(os.environ.get("TEST_SLOT", "0"))
    lab = places.Places(tmp_path / "cache", tmp_path / "state", base)
    while not all(ports.free(port) for port in lab.ports().values()):
        base += 20
        lab = places.Places(lab.cache, lab.state, base)
    return lab


@pytest.fixture()
def pretended_go(tmp_path: pathlib.Path) -> dict[str, str]:
    """Environment whose `go` notes its calls in $HOME/calls and "builds" at once.

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
            list) echo "go: downloading example.org/x v1.0.0"; echo x; echo y ;;
            build)
              [ -z "$GO_SAYS" ] || { echo "$GO_SAYS"; exit 1; }
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
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}
