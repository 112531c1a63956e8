"""CustomResourceDefinitions of others, as they stand in their pinned Go modules.

Charts ask for kinds that the Prometheus operator and the autoscaler bring into a
cluster; with the real definitions the API server judges them field by field.

Source: modules/definitions/go.mod and go.sum, which `go mod download` holds to.
"""

import json
import os
import pathlib
import re
from collections.abc import Mapping

from lib.lab import places
from lib.lab.artifacts import commands, go_modules, go_toolchain
from lib.lab.run import progress

_MODULE = "definitions"
FILES = {
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "k8s.io/autoscaler/vertical-pod-autoscaler": ("deploy/vpa-v1-crd-gen.yaml",),
}
"""By module: where its definitions lie."""


def manifest(
    where: places.Places,
    shown: progress.Progress,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return the definitions as one manifest; they are fetched once per machine.

    env: the caller's environment; the process's own when None.

    Raises:
        LabError: no Go toolchain, or the modules cannot be fetched or are not those
            of go.sum.
    """
    return "---\n".join(
        (folder / file).read_text()
        for module, folder in fetch(where, shown, _MODULE, env).items()
        for file in FILES[module]
    )


def fetch(
    where: places.Places,
    shown: progress.Progress,
    name: str,
    env: Mapping[str, str] | None = None,
) -> Mapping[str, pathlib.Path]:
    """Return the folder of each Go module that modules/NAME pins, by its path.

    Raises:
        LabError: as `manifest`.
    """
    env = os.environ if env is None else env
    pins = go_modules.files(name)
    go_mod = pins["go.mod"].decode()
    go = go_toolchain.ensure(where, go_modules.least_go(go_mod), env, shown)
    room = where.cache / "go" / "sources" / name
    room.mkdir(parents=True, exist_ok=True)
    for name, content in pins.items():
        (room / name).write_bytes(content)
    lines: list[str] = []
    commands.run(
        [go, "mod", "download", "-json", *wanted(go_mod)],
        failure=f"cannot fetch the Go modules of {name}; check that GOPROXY names a"
        " module proxy that can be reached",
        env=go_toolchain.environment(where, env),
        cwd=room,
        on_line=lines.append,
    )
    return folders("\n".join(lines))


def wanted(go_mod: str) -> tuple[str, ...]:
    """Return what to download: "module@version", as a go.mod pins it."""
    pins = re.findall(r"^\t(\S+) (v\S+)$", go_mod, re.MULTILINE)
    return tuple(f"{module}@{version}" for module, version in pins)


def folders(answer: str) -> Mapping[str, pathlib.Path]:
    """Read where each module was unpacked from what `go mod download -json` says.

    Source: Go, `go help mod download`: one JSON object after the other.
    """
    folders = {}
    decoder = json.JSONDecoder()
    at = answer.find("{")
    while at >= 0:
        module, end = decoder.raw_decode(answer, at)
        folders[module["Path"]] = pathlib.Path(module["Dir"])
        at = answer.find("{", end)
    return folders
