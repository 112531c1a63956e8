"""Of which lab the data of a cluster are; known until they are wiped.

Objects of one variant disturb another one: Nodes of the former cloud, or what a chart
would adopt. A lab of another variant is therefore refused before anything starts.
"""

import json
import os
import pathlib

import msgspec

from lib.lab import errors, places
from lib.lab.whole import record


class Variant(msgspec.Struct, frozen=True):
    """A kind of lab with a cluster of its own. provider: of its cloud."""

    provider: str = ""
    existing_cloud: str = ""
    node: bool = False
    charts: bool = False

    @property
    def command(self) -> str:
        """Return the command that starts it."""
        words = ["mooring lab up"]
        if self.provider:
            words.append(f"--cloud {self.provider}")
        if self.charts:
            words.append("--charts")
        elif self.node:
            words.append("--node")
        if self.existing_cloud:
            words.append(f"(with the existing cloud {self.existing_cloud})")
        return " ".join(words)


def of(kept: record.Record) -> Variant:
    """Return the variant of a lab."""
    return Variant(kept.provider, kept.existing_cloud, kept.node, kept.charts)


def _file(where: places.Places) -> pathlib.Path:
    return where.state / "variant.json"


def read(where: places.Places) -> Variant | None:
    """Return the variant of the data; None without data, or of an earlier version."""
    try:
        return msgspec.json.decode(_file(where).read_bytes(), type=Variant)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def write(where: places.Places, kept: record.Record) -> None:
    """Keep the variant of a lab, unless it uses a cluster that is not its own."""
    if kept.kubeconfig:
        return
    where.state.mkdir(parents=True, exist_ok=True)
    part = _file(where).with_suffix(".new")
    part.write_bytes(json.dumps(msgspec.to_builtins(of(kept))).encode())
    os.replace(part, _file(where))


def require(where: places.Places, kept: record.Record) -> None:
    """Make sure that a lab may use the data that are there.

    Raises:
        LabError: they are of another variant.
    """
    former, requested = read(where), of(kept)
    if former is None or kept.kubeconfig:
        return
    # A real node is added to what runs without one.
    added = msgspec.structs.replace(former, node=True)
    if requested in (former, added) and requested.charts == former.charts:
        return
    raise errors.LabError(
        f"the data of this lab are those of `{former.command}`, which would disturb"
        f" `{requested.command}`: repeat the former command to continue with"
        " them, or remove them with `mooring lab down --wipe`"
    )
