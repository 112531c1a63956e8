"""Load balancers on DVP converge: killed at every call, in pairs, with failures."""

import collections
import dataclasses
import threading
import time
from collections.abc import Iterator
from typing import Any

from lib.cloud import errors
from lib.cloud.dvp import kinds
from lib.cloud.load_balancers import Node, Port, PortProtocol
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from tests.contract.dvp_balancers import FakeParent, Json, ParentBalancers
from tests.contract.load_balancers import Served

LIVES_MAX = 40
NODES = tuple(Node(f"node-{number}") for number in range(1, 4))
VMS, SERVICES = kinds.VIRTUAL_MACHINES, kinds.SERVICES
CHECKED = kinds.HEALTHCHECKED_SERVICES


class Death(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at one call of its main thread, before or after it."""

    def __init__(self, parent: FakeParent, at: int | None) -> None:
        self._at = at
        self._passed = 0
        self.died_at = ""
        self._main = threading.current_thread()
        parent.before_call = lambda call: self._pass("before", call)
        parent.hook = lambda call: self._pass("after", call)

    def _pass(self, when: str, call: calls.Call) -> None:
        if threading.current_thread() is not self._main:
            return  # a watch
        self._passed += 1
        if self._passed - 1 == self._at:
            self.died_at = f"{when} {call.verb} {call.resource}"
            raise Death


class Story:
    """A Service is created, changed and deleted; the process may be killed once."""

    def __init__(self, *, serves_checked: bool, die_at: int | None) -> None:
        self.parent = FakeParent(serves_checked=serves_checked)
        for node in NODES:
            self.parent.add_vm(node.name)
        self.ground = ParentBalancers(self.parent, NODES, lambda s: time.sleep(0))
        self.facts = self.ground.facts("web")
        self.states: list[Json] = []
        self.killer = Killer(self.parent, die_at)
        self._run()
        self.ground.close()

    def _run(self) -> None:
        self._live()
        ports = (Port(443, PortProtocol.TCP, 30443, "https"),)
        self.facts = dataclasses.replace(
            self.facts, ports=ports, nodes=NODES[1:], annotations={"a": "b"}
        )
        self._live()
        self._live(gone=True)

    def _live(self, *, gone: bool = False) -> None:
        """Run processes, each until it is killed, until one settles."""
        for _ in range(LIVES_MAX):
            self.ground.restart()
            try:
                Served(self.ground, self.facts).settle(gone=gone)
            except Death:
                continue
            self.states.append(state(self.parent))
            return
        raise AssertionError("it does not settle")


def state(parent: FakeParent) -> Json:
    """Return what the parent holds, without versions and addresses."""
    kept: Json = {}
    for kind in (VMS, SERVICES, CHECKED):
        for document in parent.all(kind.resource):
            typed: Any = document
            about = typed["metadata"]
            kept[f"{kind.resource.plural}/{about['name']}"] = {
                "labels": dict(about.get("labels") or {}),
                "annotations": dict(about.get("annotations") or {}),
                "spec": typed.get("spec"),
            }
    return kept


def stories(*, serves_checked: bool) -> Iterator[Story]:
    at = 0
    while (story := Story(serves_checked=serves_checked, die_at=at)).killer.died_at:
        yield story
        at += 1


def test_a_crash_at_every_call_ends_the_same() -> None:
    """Prints where processes were killed; each kind of call must appear."""
    table = collections.Counter[str]()
    for serves_checked in (False, True):
        expected = Story(serves_checked=serves_checked, die_at=None).states
        assert [len(each) for each in expected] == (
            [5, 5, 3] if serves_checked else [4, 4, 3]
        )
        for story in stories(serves_checked=serves_checked):
            assert story.states == expected, story.killer.died_at
            table[story.killer.died_at] += 1
    for where, count in sorted(table.items()):
        print(f"killed {where:40} {count:3} times, converged {count:3}")
    kinds_of = ("services", "servicewithhealthchecks")
    verbs = [
        f"{verb} {kind}" for verb in ("create", "patch", "delete") for kind in kinds_of
    ]
    verbs += ["patch virtualmachines", "list virtualmachines"]
    called = {f"{when} {verb}" for when in ("before", "after") for verb in verbs}
    # What is confirmed to be absent is never answered.
    assert set(table) == called | {f"before get {kind}" for kind in kinds_of}


def test_two_processes_make_one_of_each() -> None:
    """They do not know of one another, and take turns; a create of both is refused."""
    parent = FakeParent()
    for node in NODES:
        parent.add_vm(node.name)
    both = [ParentBalancers(parent, NODES, lambda s: None) for _ in range(2)]
    facts = both[0].facts("web")
    served = [Served(ground, facts) for ground in both]
    plans = [each.plan() for each in served]
    refused = 0
    for steps in zip(*(plan.steps for plan in plans), strict=True):
        for each, step in zip(served, steps, strict=True):
            try:
                each.apply(step)
            except errors.Busy:
                refused += 1
    for each in served:
        settle_patiently(each)
        assert each.steps == []
    assert refused == 1
    assert len(parent.all(SERVICES.resource)) == 1
    assert len(parent.labelled(facts.uid)) == 2
    for ground in both:
        ground.close()


def settle_patiently(served: Served) -> None:
    """Settle, and again as a flow does while the watch is late with the Service."""
    for _ in range(500):
        try:
            served.settle()
        except errors.Busy:
            time.sleep(0.01)
        else:
            return
    raise AssertionError("the watch does not show the Service")


ERRORS = {
    "conflict": kube_errors.Conflict("changed", operation="x", status=409),
    "forbidden": kube_errors.Forbidden("not yours", operation="x", status=403),
    "throttled": kube_errors.Unavailable("slow down", operation="x", status=429),
    "broken": kube_errors.Unavailable("500", operation="x", status=500),
    "no answer": kube_errors.Unavailable("time-out", operation="x"),
}


def test_each_write_may_fail_and_is_made_up_for() -> None:
    """Before and after it was carried out; prints each write and error."""
    for verb, plural in (
        ("create", "services"),
        ("patch", "services"),
        ("patch", "virtualmachines"),
        ("delete", "services"),
    ):
        for name, error in ERRORS.items():
            for is_lost in (False, True):
                parent = FakeParent()
                for node in NODES:
                    parent.add_vm(node.name)
                ground = ParentBalancers(parent, NODES, lambda s: None)
                parent.faults.append(calls.Fault(error, verb, plural, after=is_lost))
                tries = settle_with_faults(ground)
                left = {f"virtualmachines/{node.name}" for node in NODES}
                print(f"{verb:7} {plural:16} {name:10} {is_lost=!s:6} {tries} tries")
                assert tries > 3, "the fault was met"
                assert not parent.faults
                assert state(parent).keys() == left
                ground.close()


def settle_with_faults(ground: ParentBalancers) -> int:
    """Create, change and delete a load balancer; return the number of tries."""
    facts = ground.facts("web")
    served = Served(ground, facts)
    tries = 0
    other = dataclasses.replace(facts, annotations={"a": "b"})
    for facts_now, gone in ((facts, False), (other, False), (other, True)):
        served.facts = facts_now
        while True:
            tries += 1
            assert tries < 20, "it does not settle"
            try:
                served.settle(gone=gone)
                break
            except errors.CloudError:
                time.sleep(0.06)
    return tries
