"""Which steps a start has, and that none waits for more than it requires."""

import pathlib

import pytest

from lib.lab import places
from lib.lab.artifacts import program_archive
from lib.lab.openstack import grounds
from lib.lab.run import progress
from lib.lab.whole import parts, record, start_steps, whole

NODE = record.Record(node=True)
CHARTS = record.Record(node=True, charts=True, images="/images")


def needs(where: places.Places, kept: record.Record) -> dict[str, set[str]]:
    """Return all steps that end before each step begins."""
    lab = parts.Lab(where, kept, grounds.OpenStackGrounds())
    sources = start_steps.Sources(None, pathlib.Path())
    plan = start_steps.LabStart(lab, sources, progress.Silent()).plan()
    direct = {step.name: set(step.needs) for step in plan}

    def closure(name: str) -> set[str]:
        own = direct.get(name, set())
        return own.union(*map(closure, own)) & direct.keys()

    return {name: closure(name) for name in direct}


@pytest.mark.parametrize("kept", [record.Record(), NODE, CHARTS])
def test_nodes_appear_while_other_programs_are_compiled(
    where: places.Places, kept: record.Record
) -> None:
    before = needs(where, kept)["nodes"]
    assert {"api", "api build", "servers"} <= before
    assert "kube build" not in before
    assert "control plane" not in before


@pytest.mark.parametrize("kept", [record.Record(), NODE, CHARTS])
def test_one_build_after_the_other(where: places.Places, kept: record.Record) -> None:
    """They share a lock: that of the API server goes first."""
    assert "api build" in needs(where, kept)["kube build"]


def test_images_are_there_before_they_are_imported(where: places.Places) -> None:
    assert "images build" in needs(where, CHARTS)["images"]


def test_the_first_start_says_what_is_coming(
    where: places.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = parts.Lab(where, record.Record(), grounds.OpenStackGrounds())
    text = whole.first_start(lab)
    print(text)
    assert text.startswith("First start: 7 programs are compiled where no download")
    assert "10 to 35 minutes on two cores, 10 GB in ~/.cache. Ctrl-C is safe" in text
    monkeypatch.setenv(program_archive.SETTING, "lab.tar.gz")
    assert "programs come from lab.tar.gz: a few minutes" in whole.first_start(lab)
