"""All rules in one table, and their violations."""

from collections.abc import Iterator, Sequence

from lib.osdpl.rules import network, openstack, programs, storage
from lib.osdpl.rules.rule import Change, Rule, at
from lib.process.config import FieldProblem

RULES: tuple[Rule, ...] = (
    *openstack.RULES,
    *storage.RULES,
    *network.RULES,
    *programs.RULES,
)


DELETION, STATUS = openstack.DELETION, openstack.STATUS


def violations(
    change: Change, rules: Sequence[Rule] = RULES
) -> Iterator[tuple[Rule, FieldProblem]]:
    """Yield each rule that is violated, with the field, its value and what is valid."""
    services = at(change.spec, "features.services") or ()
    for rule in rules:
        if not rule.service or rule.service in services:
            for problem in rule.find(change):
                yield rule, problem


def problems(change: Change, rules: Sequence[Rule] = RULES) -> tuple[FieldProblem, ...]:
    """Return the problems of a change, without repetition."""
    by_text = {str(problem): problem for _, problem in violations(change, rules)}
    return tuple(by_text.values())
