"""Which batches a change reruns, which of the long tier are due, what they took."""

import itertools
import pathlib
import sys
from types import ModuleType
from typing import Any

import pytest


def target(address: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    kind = "python_test" if "batch_compatibility_tag" in more else "python_source"
    path = address.partition(":")[0]
    named = {"address": address, "target_type": kind, "sources": [path]}
    return {**named, "dependencies": [*dependencies], **more}


def test_a_change_reruns_what_reaches_it_through_sources_and_programs(
    tiers: ModuleType,
) -> None:
    peeked = [
        target("lib/a/one.py"),
        target("lib/a/two.py", "lib/b/three.py", "lib/a/one.py"),
        target("lib/b/three.py"),
        target("charts/some/files/x.yaml:x"),
        {
            "address": "cmd/p:p",
            "target_type": "pex_binary",
            "dependencies": ["cmd/p/m"],
        },
        target("cmd/p/m", "lib/a/two.py", "3rdparty:reqs#x"),
        target(
            "tests/lab/k/x_test.py",
            *("cmd/p:p", "charts/some/files/x.yaml:x"),
            batch_compatibility_tag="tests/lab/k:k",
        ),
        target(
            "tests/lab/l/y_test.py",
            "lib/b/three.py",
            batch_compatibility_tag="tests/lab/l:l",
        ),
        target(
            "tests/lab/m/x_test.py",
            *("lib/b/three.py", "lib/a/two.py"),
            dependencies_raw=["!!lib/a/one.py", "!!lib/a/two.py"],
            batch_compatibility_tag="tests/lab/m:m",
        ),
        target("tests/lib/a/z_test.py", "lib/a/one.py", batch_compatibility_tag="t"),
    ]
    assert tiers.reruns(peeked) == {
        "charts/some": ["lab/k:k"],
        "cmd/p": ["lab/k:k"],
        "lib/a": ["lab/k:k"],
        "lib/b": ["lab/k:k", "lab/l:l", "lab/m:m"],
    }


def test_a_change_reruns_what_contains_it_by_a_link(
    tiers: ModuleType, tmp_path: pathlib.Path
) -> None:
    for folder in ("library/templates", "one/files", "one/charts", "two/charts/one"):
        (tmp_path / "charts" / folder).mkdir(parents=True)
    (tmp_path / "charts/library/templates/_pod.tpl").touch()
    (tmp_path / "charts/one/files/x.yaml").touch()
    (tmp_path / "charts/one/charts/library").symlink_to("../../library")
    (tmp_path / "charts/two/charts/one/files").symlink_to("../../../one/files")
    peeked = [
        target("charts/two/charts/one/files/x.yaml:chart"),
        target("charts/one/charts/library/templates/_pod.tpl:chart"),
        target(
            "tests/lab/k/x_test.py",
            "charts/two/charts/one/files/x.yaml:chart",
            batch_compatibility_tag="tests/lab/k:two",
        ),
        target(
            "tests/lab/k/y_test.py",
            "charts/one/charts/library/templates/_pod.tpl:chart",
            batch_compatibility_tag="tests/lab/k:one",
        ),
    ]
    assert tiers.reruns(peeked, tmp_path) == {
        "charts/library": ["lab/k:one"],
        "charts/one": ["lab/k:two"],
    }
    for changed, expected in (
        ("charts/library/templates/_pod.tpl", {"charts/one:chart"}),
        ("charts/one/files/x.yaml", {"charts/two:chart"}),
        ("charts/one/values.yaml", set()),
        ("charts/library-of-others/x.yaml", set()),
    ):
        assert tiers.linking([changed], tmp_path) == expected, changed


def test_a_row_that_grows_is_named(tiers: ModuleType) -> None:
    text = "| `lib/a` | lab/k:k, lab/l:l |\n| `tests/lab/x.py` | default | 3 | x |\n"
    written = tiers.rows(text)
    assert written == {"lib/a": ["lab/k:k", "lab/l:l"]}
    assert tiers.differences(written, written) == ""
    grown = {"lib/a": ["lab/k:k", "lab/m:m"], "lib/b": ["lab/k:k"]}
    assert tiers.differences(written, grown).splitlines() == [
        "lib/a: also reruns lab/m:m",
        "lib/a: no longer reruns lab/l:l",
        "lib/b: also reruns lab/k:k",
    ]
    assert tiers.is_grown(written, grown)
    shrunk = {"lib/a": ["lab/k:k"], "lib/new": ["lab/k:k"]}
    assert not tiers.is_grown(written, shrunk)


def batches(tiers: ModuleType, **seconds: int) -> list[Any]:
    return [tiers.Batch(name, "long", s, (name,)) for name, s in seconds.items()]


def names(group: Any) -> list[str]:
    return [batch.address for batch in group]


def test_tests_without_the_lab_are_batches_of_the_long_tier(
    tiers: ModuleType, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "tests/lib/a"
    folder.mkdir(parents=True)
    (folder / "BUILD").write_text(
        'python_tests(name="tests")\n'
        'long_tests(name="fuzz-long", sources=["x_test.py"], budget_s=7, env=["A=1"])\n'
    )
    (batch,) = tiers.batches(tmp_path)
    assert batch == tiers.Batch(
        "tests/lib/a:fuzz-long", "long", 7, ("tests/lib/a/x_test.py",)
    )


def test_what_a_change_touches_comes_first_then_what_has_not_run_for_long(
    tiers: ModuleType,
) -> None:
    candidates = batches(tiers, a=100, b=100, c=100, d=100)
    planned = tiers.plan(candidates, {"c"}, {"a": 19, "b": 10, "c": 19, "d": 18}, 20)
    assert names(planned.changed) == ["c"]
    assert names(planned.forced) == ["b"]
    assert names(planned.unchanged) == ["d", "a"]


def test_what_does_not_fit_is_left_and_smaller_ones_still_run(
    tiers: ModuleType,
) -> None:
    candidates = batches(tiers, a=100, b=300, c=50)
    planned = tiers.plan(candidates, {"a", "b", "c"}, {"c": 1}, 2, capacity_s=200)
    assert (names(planned.changed), names(planned.postponed)) == (["a", "c"], ["b"])


def test_every_batch_runs_within_ten_runs_whatever_happens(tiers: ModuleType) -> None:
    """Nothing is ever touched; no more than two fit into a run."""
    candidates = batches(tiers, **{f"batch-{n}": 100 for n in range(8)})
    green: dict[str, int] = {}
    ran: dict[str, list[int]] = {batch.address: [0] for batch in candidates}
    for run in range(1, 60):
        planned = tiers.plan(candidates, [], green, run, capacity_s=200)
        for batch in planned.forced:
            green[batch.address] = run
            ran[batch.address].append(run)
    gaps = [b - a for runs in ran.values() for a, b in itertools.pairwise(runs)]
    print(ran)
    assert max(gaps) <= tiers.DUE_AFTER


def test_seconds_are_held_against_budgets(
    tiers: ModuleType, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "batch.xml").write_text(
        '<testsuites><testsuite><testcase classname="tests.lab.k.x_test" name="one"'
        ' time="30.5"/><testcase classname="tests.lab.k.x_test" name="two" time="80"/>'
        '<testcase classname="tests.lib.y_test" name="z" time="9"/></testsuite>'
        "</testsuites>"
    )
    candidates = [
        tiers.Batch("tests/lab/k:k", "default", 100, ("tests/lab/k/x_test.py",)),
        tiers.Batch("tests/lab/l:l", "default", 100, ("tests/lab/l/x_test.py",)),
    ]
    (duration,) = tiers.measured(candidates, tmp_path)
    assert (duration.seconds, duration.longest, duration.longest_s) == (
        110.5,
        "two",
        80,
    )
    assert "OVER BUDGET  two 80 s" in tiers.table([duration])


def test_a_record_that_can_not_be_read_is_as_none(
    tiers: ModuleType, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "ci" / "long.json"
    assert tiers.read_record(file) == tiers.Record()
    record = tiers.Record("abc", 3, {"a": 2}, ["b"])
    tiers.write_record(file, record)
    assert tiers.read_record(file) == record
    for text in ("", "[]", '{"no": 1}'):
        file.write_text(text)
        assert tiers.read_record(file) == tiers.Record()


@pytest.mark.parametrize(("bound_s", "code"), [(60, 3), (1, None)])
def test_a_run_ends_at_its_bound(
    tiers: ModuleType, bound_s: float, code: int | None
) -> None:
    program = "import sys, time; print('one', flush=True); time.sleep(SECONDS)"
    seconds = "0" if code else "30"
    words = [sys.executable, "-c", program.replace("SECONDS", seconds)]
    words[-1] += "; sys.exit(3)"
    got, lines = tiers.run_bounded(words, bound_s)
    assert got == code
    assert lines[0] == "one\n"


def test_batches_that_pants_calls_succeeded_are_green(tiers: ModuleType) -> None:
    lines = [
        "17:14:57.30 [INFO] Completed: Run Pytest - tests/lab/a/b_test.py:x and 1 other"
        " files - succeeded.\n",
        "17:14:57.30 [ERROR] Completed: Run Pytest - tests/lab/a/c_test.py - failed\n",
    ]
    assert tiers.green_files(lines) == {"tests/lab/a/b_test.py"}


def test_a_failure_before_the_bound_counts_although_the_run_was_cut_off(
    tiers: ModuleType,
) -> None:
    """Lines as Pants 2.17.1 writes them."""
    done = "[INFO] Completed: Run Pytest - tests/lab/a/b_test.py:b - succeeded."
    red = (
        "[ERROR] Completed: Run Pytest - tests/lab/a/c_test.py - failed (exit code 1)."
    )
    late = "[ERROR] Completed: Run Pytest - tests/lab/a/d_test.py - timed out."
    assert not tiers.has_failed([done, "x Run Pytest failed to start"])
    assert tiers.has_failed([done, red])
    assert tiers.has_failed([late])


def test_a_file_that_pants_lists_stands_for_its_batch(tiers: ModuleType) -> None:
    def batch(address: str) -> Any:
        folder = address.partition(":")[0]
        return tiers.Batch(address, "long", 9, (f"{folder}/x_test.py",))

    candidates = [
        batch("tests/lab/a:a"),
        batch("tests/lab/a:a-long"),
        batch("tests/bench:b"),
    ]
    listed = ["tests/lab/a/x_test.py:a-long", "tests/bench/x_test.py:b", "lib/a.py"]
    assert tiers.reached(listed, candidates) == {"tests/lab/a:a-long", "tests/bench:b"}
    assert tiers.reached(["tests/lab/a/x_test.py"], candidates) == {"tests/lab/a:a"}
