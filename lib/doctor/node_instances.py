"""Checks of the instances of Nodes, by clouds that have some: pure."""

from collections.abc import Sequence

from lib.cloud import checkup, model
from lib.doctor.model import CheckResult, CheckState, NodeIdentity, Read, ReadFailure

CHECK = "instances"
SHOWN = 20
"""Problems that get a line each; further ones are counted."""


def refs(nodes: Sequence[NodeIdentity]) -> tuple[model.InstanceRef, ...]:
    """Return the references of the instances of Nodes."""
    return tuple(model.InstanceRef(node.name, node.provider_id) for node in nodes)


def results(
    number: int, read: Read[tuple[checkup.InstanceProblem, ...]] | ReadFailure
) -> tuple[CheckResult, ...]:
    """Check the instances of some Nodes. number: of the Nodes."""
    if isinstance(read, ReadFailure):
        return (CheckResult(CHECK, CheckState.SKIPPED, read.text),)
    if not read.value:
        text = f"no problem of the instances of {number} Nodes"
        return (CheckResult(CHECK, CheckState.OK, text),)
    lines = [
        CheckResult(
            CHECK,
            CheckState.WARNING,
            f"Node {problem.node}: {problem.text}",
            problem.remedy,
        )
        for problem in read.value[:SHOWN]
    ]
    if len(read.value) > SHOWN:
        more = f"and {len(read.value) - SHOWN} more problems of other Nodes"
        lines.append(CheckResult(CHECK, CheckState.WARNING, more))
    return tuple(lines)
