"""A lab with a cloud that no code of the lab has heard of: from start to end."""

import pathlib

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.run import processes, waiting
from lib.lab.status import table
from lib.lab.whole import demo, parts, record, start_steps, whole
from tests.harness import testing
from tests.third import grounds

NAMES = ("sheep-pen-1", "sheep-pen-2")
PROGRAMS = {
    f"{grounds.MANAGER}.pex": "run_manager",
    f"{pexes.TOOL}.pex": "run_tool",
}


def health(lab: parts.Lab) -> dict[str, table.Health]:
    return {row.name: row.health for row in whole.status(lab)}


def test_a_lab_of_another_cloud_comes_up_is_shown_and_goes(
    elsewhere: places.Places, tmp_path: pathlib.Path
) -> None:
    """Its manager and `mooring` are the usual ones, with the third provider."""
    for name, function in PROGRAMS.items():
        (tmp_path / name).write_text(grounds.script(function))
    ground = grounds.MeadowGrounds()
    recorded = record.Record(provider=ground.name, names=NAMES)
    lab = parts.Lab(elsewhere, recorded, ground)
    try:
        whole.up(lab, start_steps.Sources(None, tmp_path), testing.shown())
        look = whole.look(lab)
        waiting.until("initialised", lambda: demo.initialised(NAMES)(look()))
        nodes = {node.name: node for node in look().nodes}
        print(f"{len(nodes)} Nodes, programs: {', '.join(health(lab))}")
        assert {node.provider_id for node in nodes.values()} == {
            "meadow://sheep-1",
            "meadow://sheep-2",
        }
        assert set(health(lab).values()) == {table.Health.GOOD}
        assert {"meadow", "meadow-ccm", "kube-apiserver"} <= health(lab).keys()
        stopped = look().server(NAMES[1])
        assert stopped is not None
        lab.cloud().stop(stopped.id)
        tainted = demo.has_taint(NAMES[1], table.SHUTDOWN)
        waiting.until("the shutdown taint", lambda: tainted(look()))
        lab.cloud().start(stopped.id)
        waiting.until("Ready again", lambda: demo.initialised(NAMES)(look()))
        with ground.faults["away"](elsewhere):
            assert health(lab)["meadow"] is table.Health.DOWN
        assert health(lab)["meadow"] is table.Health.GOOD
    finally:
        whole.down(elsewhere, ground, testing.shown(), wipe=False)
    assert record.read(elsewhere) is None
    assert processes.names(elsewhere) == ()
