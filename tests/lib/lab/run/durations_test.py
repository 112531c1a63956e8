"""The remaining time of a start, by the durations of an earlier one."""

import pathlib

import pytest

from lib.lab.run import durations, steps


def step(name: str, *needs: str) -> steps.StartStep:
    return steps.StartStep(name, lambda: None, needs)


PLAN = (
    step("build"),
    step("cloud", "build"),
    step("cluster"),
    step("nodes", "cloud", "cluster"),
)
LAST = {"build": 5.0, "cloud": 30.0, "cluster": 20.0, "nodes": 10.0}


@pytest.mark.parametrize(
    ("elapsed", "done", "expected"),
    [
        pytest.param({}, [], 45, id="nothing has begun: the longest chain"),
        pytest.param({"build": 2, "cluster": 2}, [], 43, id="two steps run"),
        pytest.param({"cloud": 1}, ["build", "cluster"], 39, id="one runs"),
        pytest.param({"cloud": 90}, ["build", "cluster"], 10, id="one takes longer"),
        pytest.param({"cluster": 1}, ["build", "cloud"], 29, id="the other chain"),
        pytest.param({}, ["build", "cloud", "cluster", "nodes"], 0, id="all is done"),
    ],
)
def test_the_longest_chain_remains(
    elapsed: dict[str, float], done: list[str], expected: float
) -> None:
    assert durations.remaining_s(PLAN, LAST, elapsed, frozenset(done)) == expected


def test_without_an_earlier_duration_nothing_is_estimated() -> None:
    """A step that is done needs none."""
    last = {name: took for name, took in LAST.items() if name != "build"}
    assert durations.remaining_s(PLAN, last, {}, frozenset()) is None
    assert durations.remaining_s(PLAN, last, {}, frozenset({"build"})) == 40


def test_kinds_of_starts_are_kept_apart(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "folder" / "durations.json"
    assert durations.read(file, "new") == {}
    durations.write(file, "new", {"cloud": 50.0})
    durations.write(file, "again", {"cloud": 9.0})
    durations.write(file, "new", {"cloud": 40.0})
    assert durations.read(file, "new") == {"cloud": 40.0}
    assert durations.read(file, "again") == {"cloud": 9.0}
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"new": 1}', '{"new": {"a": "b"}}'])
def test_a_damaged_file_is_no_estimate(tmp_path: pathlib.Path, text: str) -> None:
    """It is replaced by the next start."""
    file = tmp_path / "durations.json"
    file.write_text(text)
    assert durations.read(file, "new") == {}
    durations.write(file, "new", {"cloud": 1.0})
    assert durations.read(file, "new") == {"cloud": 1.0}


def test_a_folder_that_cannot_be_written_fails_no_start(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    durations.write(tmp_path / "file" / "durations.json", "new", {"cloud": 1.0})
