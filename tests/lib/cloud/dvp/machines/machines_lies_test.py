"""Whatever lists of the parent lack, no machine that exists is deleted or created."""

import dataclasses
import json
import zlib
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.kube import errors, resources
from tests.contract.dvp_machines import DISKS, VMS
from tests.lib.cloud.dvp.machines.stage import PARTS, Life, Stage

LIE_S = 100.0
"""Of one lie; up to six follow each other: ten minutes."""


@dataclasses.dataclass(frozen=True)
class Lie:
    """What lists of VMs and disks lack. reads: single reads lack the same."""

    form: str
    reads: bool
    hidden: int
    restarts: bool

    def lacks(self, name: str) -> bool:
        if self.form == "empty":
            return True
        by_name = zlib.crc32(f"{self.hidden}{name}".encode()) % 2 == 0
        return self.form in ("partial", "truncated") and by_name


class Lying:
    """Answers of a parent, which are wrong for a time."""

    def __init__(self, stage: Stage) -> None:
        self.lie: Lie | None = None
        self._genuine = stage.parent.request
        setattr(stage.parent, "request", self.request)  # noqa: B010

    def request(self, method: str, path: str, **more: Any) -> bytes:
        answer = self._genuine(method, path, **more)
        lie, target = self.lie, resources.parse(path)
        plurals = (VMS.plural, DISKS.plural)
        if lie is None or method != "GET" or target.plural not in plurals:
            return answer
        if target.name:
            if lie.reads and lie.lacks(target.name):
                raise errors.NotFound("not found", operation="GET", status=404)
            return answer
        document = json.loads(answer)
        items = document["items"]
        if lie.form == "doubled":
            document["items"] = [*items, *items]
        else:
            names = [item["metadata"]["name"] for item in items]
            pairs = zip(names, items, strict=True)
            document["items"] = [item for name, item in pairs if not lie.lacks(name)]
        return json.dumps(document).encode()


def uids(stage: Stage) -> dict[str, str]:
    return {
        f"{kind.kind} {row['metadata']['name']}": row["metadata"]["uid"]
        for kind in PARTS
        for row in stage.parent.each(kind)
        if not row["metadata"].get("deletionTimestamp")
    }


LIES = strategies.builds(
    Lie,
    form=strategies.sampled_from(["empty", "partial", "truncated", "doubled"]),
    reads=strategies.booleans(),
    hidden=strategies.integers(0, 5),
    restarts=strategies.booleans(),
)


def tell(stage: Stage, process: Life, lying: Lying, lie: Lie | None) -> Life:
    """Run the process for the time of a lie, with its drift checks."""
    lying.lie = lie
    if lie is not None and lie.restarts:
        process = Life(stage)
    for second in range(int(LIE_S)):
        if second % 20 == 0:
            for opened in stage.access.opened:
                opened.relist()
            process.drift()
        process.relist()
        process.turn()
        stage.now_s += 1.0
    return process


@hypothesis.given(
    machines=strategies.sampled_from([1, 3, 8]),
    lies=strategies.lists(LIES, min_size=1, max_size=6),
)
@hypothesis.settings(max_examples=25, deadline=None)
def test_no_machine_is_deleted_or_created_again(machines: int, lies: list[Lie]) -> None:
    """For lists that are empty, partial, truncated or double, and for 404s."""
    stage = Stage()
    for number in range(machines):
        stage.machine(f"worker-{number}")
    process = Life(stage)
    process.settle()
    before, state, lying = uids(stage), stage.state(), Lying(stage)
    assert len([name for name in before if "VirtualMachine " in name]) == machines
    for lie in lies:
        process = tell(stage, process, lying, lie)
        assert uids(stage) == before
    process = tell(stage, process, lying, None)
    process.settle()
    assert uids(stage) == before
    after = stage.state()
    assert after["parent"] == state["parent"]
    assert {m: v["ID"] for m, v in after["machines"].items()} == {
        m: v["ID"] for m, v in state["machines"].items()
    }


@pytest.mark.parametrize("reads", [False, True])
def test_machines_that_seem_absent_keep_their_id(reads: bool) -> None:
    """Also where only lists, or lists and single reads, lack them."""
    stage = Stage()
    for number in range(4):
        stage.machine(f"worker-{number}")
    process = Life(stage)
    process.settle()
    before, lying = uids(stage), Lying(stage)
    process = tell(stage, process, lying, Lie("empty", reads, 0, restarts=False))
    assert uids(stage) == before
