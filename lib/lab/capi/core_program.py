"""The core manager of Cluster API, built from a pinned Go module, once per machine.

Beside the program is a copy of its definitions, roles and webhook configurations, so
that a start needs no Go.

Source: modules/cluster-api/go.mod and go.sum.
"""

import pathlib
import shutil
from collections.abc import Mapping

from lib.lab import places
from lib.lab.artifacts import single_program
from lib.lab.run import progress

NAME = "cluster-api"
"""Of the program, of its module and of its log."""

_CONFIG = "core/config"
_KEPT = ("crd/bases", "rbac", "webhook")


def _keep_config(module: pathlib.Path, target: pathlib.Path) -> None:
    shutil.rmtree(target / "config", ignore_errors=True)
    for part in _KEPT:
        shutil.copytree(module / _CONFIG / part, target / "config" / part)


_PROGRAM = single_program.SingleProgram(
    NAME, "sigs.k8s.io/cluster-api/core", "sigs.k8s.io/cluster-api", _keep_config
)


def path(where: places.Places) -> pathlib.Path:
    """Return the built program.

    Raises:
        LabError: it is not built yet.
    """
    return _PROGRAM.path(where)


def folder(where: places.Places) -> pathlib.Path:
    """Return the folder of the program and its manifests."""
    return _PROGRAM.folder(where)


def config(where: places.Places) -> pathlib.Path:
    """Return the folder of its manifests, as in core/config of its repository."""
    return _PROGRAM.folder(where) / "config"


def build(
    where: places.Places,
    shown: progress.Progress,
    env: Mapping[str, str] | None = None,
) -> None:
    """Build the program unless it is there.

    Raises:
        LabError: as `SingleProgram.build`.
    """
    _PROGRAM.build(where, shown, env)
