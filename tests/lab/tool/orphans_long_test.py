"""`mooring orphans` refused, interrupted, and with lists that fail, on the lab.

The leftovers are those of orphans_test.py.
"""

import json
from collections.abc import Iterator

import pytest

from lib.lab.openstack import layout
from lib.lab.run import waiting
from tests.harness.daemons import tool
from tests.harness.orphans import leftovers
from tests.harness.orphans.leftovers import Ground
from tests.harness.services import balancing

INTERRUPTED = 130
POINTS = (1, 3, 6, 1)
"""Writes that each run may make before Ctrl-C; what it began goes on in the cloud."""


@pytest.fixture(scope="module")
def ground(open_room: balancing.Open) -> Iterator[Ground]:
    """Return a project with leftovers."""
    with leftovers.ground(open_room("orphans-more", 1)) as new_ground:
        yield new_ground


def test_a_table_and_a_refusal(ground: Ground) -> None:
    """Without --delete a table; a question that is answered with no deletes nothing.

    Nothing is listed that is younger than ten minutes, unless a test asks for it.
    """
    young = ground.run("--output=json")
    assert (young.returncode, json.loads(young.stdout)["orphans"]) == (0, [])
    counted = balancing.Counted(ground.room.entrance)
    shown = ground.run(leftovers.ANY_AGE)
    assert (shown.returncode, shown.stdout.count("Orphans")) == (3, 1)
    refused = ground.run(leftovers.ANY_AGE, "--delete", typed="n\n")
    assert refused.returncode == 3
    assert counted.writes() == []


def test_ids_of_other_clusters_are_refused(ground: Ground) -> None:
    result = ground.run(leftovers.ANY_AGE, "--cluster-id=another-cluster")
    assert (result.returncode, result.stdout) == (1, "")
    assert 'invalid value "another-cluster"' in result.stderr


def test_a_list_that_fails_is_unknown(ground: Ground) -> None:
    """Octavia hangs up: load balancers are unknown, security groups are not."""
    ground.room.entrance.down.add(layout.OCTAVIA)
    try:
        document = ground.list(code=1)
    finally:
        ground.room.entrance.down.clear()
    unknown = {row["kind"] for row in document["unknown"]}
    print(document["unknown"])
    assert unknown == {"load-balancer", "shared-use", "pool"}


def test_a_cluster_that_answers_is_not_gone(ground: Ground) -> None:
    """Then one that does not: the cloud alone is read, and its ID has to be typed."""
    gone = ("--cluster-is-gone", f"--cluster-id={ground.cluster_id}")
    result = ground.run(*gone)
    assert (result.returncode, result.stdout) == (1, "")
    assert "still answers" in result.stderr
    silent = ground.conf.with_name("orphans-silent-kubeconfig")
    text = ground.kubeconfig.read_text()
    silent.write_text(text.replace(f":{ground.room.where.port('apiserver')}", ":1"))
    assert silent.read_text() != text
    document = ground.list(*gone, code=3, kubeconfig=str(silent))
    uids = json.dumps(document["orphans"])
    assert ground.ids["living"] in uids
    words = (leftovers.ANY_AGE, *gone, "--delete", "--yes")
    result = ground.run(*words, kubeconfig=str(silent), typed="no\n")
    assert result.returncode == 1
    assert "nothing was deleted" in result.stderr


def interrupt(ground: Ground, writes: int) -> None:
    """Press Ctrl-C once the tool has made some writes."""
    counted = balancing.Counted(ground.room.entrance)
    words = [*ground.words(), leftovers.ANY_AGE, "--delete", "--yes"]
    with tool.started(*words) as process:
        waiting.until(
            f"{writes} writes",
            lambda: len(counted.writes()) >= writes or process.poll() is not None,
            poll_s=0.02,
        )
        result = tool.interrupted(process)
    shown = result.stderr.splitlines()
    print(f"{len(counted.writes())} writes, then {result.returncode}: {shown[-1:]}")
    assert result.returncode == INTERRUPTED
    assert shown[-1] == "Interrupted."


def test_an_interrupted_deletion_is_run_again(ground: Ground) -> None:
    """Ctrl-C after some writes, four times; the last run deletes what is left."""
    document = ground.list(code=3)
    listed = {row["id"] for row in document["orphans"] if row["kind"] != "volume"}
    left = len(listed)
    for writes in POINTS:
        interrupt(ground, writes)
        rest = {row["id"] for row in ground.list(code=3)["orphans"]} & listed
        print(f"{len(rest)} of {left} are left")
        assert len(rest) <= left
        left = len(rest)
    said_last = ground.list("--delete", "--yes", code=3)
    assert said_last["failed"] == []
    everything = ground.list(code=3)
    assert {row["kind"] for row in everything["orphans"]} == {"volume"}
    (kept,) = everything["kept"]
    assert kept["kind"] == "floating-ip"
    said_last = ground.list("--delete", "--yes", "--kept", "--volumes", code=0)
    kinds = sorted(row["kind"] for row in said_last["deleted"])
    assert kinds == ["floating-ip", "volume"]
    shown_last = json.dumps(ground.list(code=0))
    for key in ("living", "volume-used", "volume-pending"):
        assert ground.ids[key] not in shown_last, key
