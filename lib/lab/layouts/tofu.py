"""OpenTofu as the installer runs it: no network, a state file for each root.

The provider is found in a folder (a filesystem mirror, unpacked): `init` asks no
registry.

Source: OpenTofu, "CLI Configuration File", provider_installation; "Command: plan",
detailed exit codes.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping

from lib.lab import errors, places
from lib.lab.artifacts import go_modules
from lib.lab.layouts import tools
from lib.lab.run import progress

Json = Mapping[str, object]

_SOURCE = "registry.opentofu.org/terraform-provider-openstack/openstack"
_CONFIGURATION = """disable_checkpoint = true
provider_installation {{
  filesystem_mirror {{
    path = {path}
  }}
}}
"""
# Proxies of the user's shell cannot reach the lab's loopback.
_KEPT = ("HOME", "PATH", "TMPDIR", "SSL_CERT_FILE")
_TAIL = 4000


@dataclasses.dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed, and its exit code. 2 of `plan`: there are changes."""

    code: int
    text: str


def version(module: str, package: str) -> str:
    """Return the version that a module of lib/lab/artifacts/modules pins: "1.12.6"."""
    for line in go_modules.files(module)["go.mod"].decode().splitlines():
        words = line.split()
        if words[:1] == [package]:
            return words[1].removeprefix("v")
    raise errors.LabError(f"modules/{module}/go.mod does not require {package}")


@dataclasses.dataclass(frozen=True, slots=True)
class Tofu:
    """The program, and the environment in which it finds the provider."""

    program: pathlib.Path
    env: Mapping[str, str]

    def run(self, folder: pathlib.Path, *arguments: str) -> Printed:
        """Run a command in a root; its text has standard error, too."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=folder,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Printed(done.returncode, done.stdout)

    def require(self, folder: pathlib.Path, *arguments: str) -> str:
        """Run a command that must succeed; return its text.

        Raises:
            LabError: its exit code is neither 0 nor 2; with the end of its text.
        """
        answer = self.run(folder, *arguments)
        if answer.code not in (0, 2):
            raise errors.LabError(
                f"tofu {arguments[0]} failed in {folder.name}:\n{answer.text[-_TAIL:]}"
            )
        return answer.text

    def start(self, folder: pathlib.Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own, for who ends it."""
        return subprocess.Popen(
            [self.program, *arguments],
            cwd=folder,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def build(where: places.Places, shown: progress.Progress) -> Tofu:
    """Build both programs unless they are there, and install the provider.

    Raises:
        LabError: see `single_program.SingleProgram.build`.
    """
    for program in (tools.TOFU, tools.OPENSTACK):
        program.build(where, shown)
    mirror = _install(where)
    file = mirror / "tofu.rc"
    _write(file, _CONFIGURATION.format(path=json.dumps(str(mirror))))
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return Tofu(
        tools.TOFU.path(where),
        {
            **env,
            "TF_CLI_CONFIG_FILE": str(file),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "TF_CLI_ARGS": "-no-color",
        },
    )


def _install(where: places.Places) -> pathlib.Path:
    """Place the provider where OpenTofu reads it; return the mirror's folder."""
    binary = tools.OPENSTACK.path(where)
    pinned = version(tools.OPENSTACK.name, tools.OPENSTACK.package)
    mirror = binary.parent / "mirror"
    target = (
        mirror
        / _SOURCE
        / pinned
        / "linux_amd64"
        / f"terraform-provider-openstack_v{pinned}"
    )
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(binary, target)
    return mirror


def _write(file: pathlib.Path, text: str) -> None:
    """Write a file that others may read at the same time."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as scratch:
        scratch.write(text)
    os.replace(scratch.name, file)


@contextlib.contextmanager
def copied(tree: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield a copy of terraform/CLOUD without links; roots keep files in it."""
    with tempfile.TemporaryDirectory(prefix="mooring-layouts-") as scratch:
        copy = pathlib.Path(scratch) / tree.name
        shutil.copytree(tree, copy)
        yield copy
