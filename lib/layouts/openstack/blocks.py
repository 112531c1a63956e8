"""Blocks for a root of a layout: what the next apply imports and moves. Pure.

Source: OpenTofu, "Import" and "Refactoring". A removed block cannot name a type that
the provider has dropped (OpenTofu 1.12 stops with "no schema available"): the command
`tofu state rm` can.
"""

import dataclasses
import json
import shlex
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, slots=True)
class ImportBlock:
    """An object that becomes the resource at an address. note: how it was found."""

    address: str
    id: str
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class MovedBlock:
    """A resource that has another address in this version."""

    source: str
    target: str


@dataclasses.dataclass(frozen=True, slots=True)
class Recovery:
    """All blocks, and problems that blocks cannot solve, as sentences.

    forgotten: addresses, without indexes, that the state must forget before.
    """

    imports: tuple[ImportBlock, ...] = ()
    moves: tuple[MovedBlock, ...] = ()
    forgotten: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def text(recovery: Recovery) -> str:
    """Return the blocks as the text of a .tf file, formatted as `tofu fmt` does it."""
    return "\n".join(_texts(recovery))


def _texts(recovery: Recovery) -> Iterator[str]:
    if recovery.forgotten:
        commands = "".join(
            f"#   tofu state rm {shlex.quote(address)}\n"
            for address in recovery.forgotten
        )
        yield f"# Before the next plan; the objects stay:\n{commands}"
    for moved in recovery.moves:
        yield f"moved {{\n  from = {moved.source}\n  to   = {moved.target}\n}}\n"
    for each in recovery.imports:
        note = f"# {each.note}\n" if each.note else ""
        id_ = json.dumps(each.id)
        yield f"{note}import {{\n  to = {each.address}\n  id = {id_}\n}}\n"
