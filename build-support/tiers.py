"""Chooses batches of tests, and compares what they took with what they may take.

Standard library only: CI runs it beside Pants, with the Python 3.11 of the machine.

  reruns   prints which batches of the lab a change of each room reruns, and fails when
           there are more than docs/proofs.md says (--write replaces its rows)
  report   prints seconds per batch against tests/budgets.toml, from JUnit reports
  long     runs the batches of the long tier that are due, for 20 minutes at most
"""

import argparse
import ast
import collections
import dataclasses
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGETS = pathlib.Path("tests/budgets.toml")
PROOFS = pathlib.Path("docs/proofs.md")
REPORTS = pathlib.Path("dist/test/reports")
PARTS = ("tests/lab", "tests/bench")
DEFAULT, LONG = "default", "long"
SLOTS = 2
BOUND_S = 20 * 60
"""The longest batch has a budget of 8 minutes, and so runs to its end."""
DUE_AFTER = 10
"""A batch that no change touches runs at least in every tenth run."""
_LONG_TESTS = "long_tests"
_MACROS = ("lab_tests", _LONG_TESTS)
_ROW = re.compile(r"^\| `(?P<room>[^`]+)` \| (?P<batches>[^|]*) \|$")
_FAILED = re.compile(r"Completed: Run Pytest.*(failed|timed out)")
_DONE = re.compile(r"Completed: Run Pytest.*?(tests/\S+?_test\.py)\S*.*succeeded")


@dataclasses.dataclass(frozen=True)
class Batch:
    """One call of lab_tests() or long_tests() in a BUILD file.

    files: paths from the root.
    """

    address: str
    tier: str
    budget_s: int
    files: tuple[str, ...]


def batches(root: pathlib.Path) -> list[Batch]:
    """Return every batch of the lab and of the long tier, as BUILD files declare it."""
    declared = []
    for build in sorted((root / "tests").rglob("BUILD")):
        folder = build.parent.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(build.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _MACROS:
                declared.append(_batch(folder, node))
    return declared


def _batch(folder: str, call: ast.Call) -> Batch:
    fields = {
        keyword.arg: ast.literal_eval(keyword.value)
        for keyword in call.keywords
        if keyword.arg in ("name", "sources", "budget_s", "long")
    }
    files = tuple(f"{folder}/{name}" for name in fields["sources"])
    is_long = fields.get("long") or ast.unparse(call.func) == _LONG_TESTS
    tier = LONG if is_long else DEFAULT
    return Batch(f"{folder}:{fields['name']}", tier, fields["budget_s"], files)


def budgets(root: pathlib.Path) -> dict[str, dict[str, int]]:
    """Return the seconds that each batch may take, by tier and address."""
    return tomllib.loads((root / BUDGETS).read_text())


# Which change reruns what.


def room(path: str) -> str:
    """Return the room of a source file: its folder, or its chart."""
    parts = path.split("/")
    if parts[0] == "charts":
        return "/".join(parts[:2])
    folder = "/".join(parts[:-1])
    modules = "lib/lab/artifacts/modules"
    return modules if folder.startswith(modules) else folder


def real(path: str, root: pathlib.Path) -> str:
    """Return the path of the file behind links, from the root."""
    return (root / path).resolve().relative_to(root.resolve()).as_posix()


def linking(changed: Iterable[str], root: pathlib.Path) -> set[str]:
    """Return the targets of the charts that contain changed files by links.

    Pants knows the owner of a file, and not those who have it by a link.
    """
    links = (*root.glob("charts/*/charts/*"), *root.glob("charts/*/charts/*/*"))
    files = set(changed)
    targets = set()
    for link in (link for link in links if link.is_symlink()):
        path = link.relative_to(root)
        target = real(str(path), root)
        if any(file == target or file.startswith(f"{target}/") for file in files):
            targets.add(f"charts/{path.parts[1]}:chart")
    return targets


def reruns(
    targets: Iterable[Mapping[str, Any]], root: pathlib.Path = ROOT
) -> dict[str, list[str]]:
    """Return the batches of the lab that a change of each room reruns.

    targets: the output of `./pants peek ::`.
    """
    by_address = {str(target["address"]): target for target in targets}
    batches_by_room: dict[str, set[str]] = collections.defaultdict(set)
    for address, target in by_address.items():
        batch = str(target.get("batch_compatibility_tag") or "")
        if target["target_type"] == "python_test" and batch.startswith(PARTS):
            for reached in _closure(by_address, address):
                for path in by_address[reached].get("sources") or ():
                    if path.startswith(("lib/", "cmd/", "charts/")):
                        changed = room(real(path, root))
                        batches_by_room[changed].add(batch.removeprefix("tests/"))
    return {name: sorted(batches_by_room[name]) for name in sorted(batches_by_room)}


def _closure(by_address: Mapping[str, Mapping[str, Any]], start: str) -> set[str]:
    """Follow dependencies, but not those that a test leaves out ("!!" in its BUILD)."""
    raw = by_address[start].get("dependencies_raw") or ()
    excluded = {entry.removeprefix("!!") for entry in raw if entry.startswith("!!")}
    # A folder stands for the targets of its files.
    folders = tuple(f"{entry}/" for entry in excluded)
    closure, pending = {start}, [start]
    while pending:
        for address in by_address[pending.pop()].get("dependencies") or ():
            # A requirement and the like has no sources of its own.
            is_excluded = address in excluded or address.startswith(folders)
            if address in by_address and address not in closure and not is_excluded:
                closure.add(address)
                pending.append(address)
    return closure


def rows(text: str) -> dict[str, list[str]]:
    """Return the batches by room, as docs/proofs.md has them."""
    matches = (_ROW.match(line) for line in text.splitlines())
    return {
        match["room"]: [name for name in match["batches"].split(", ") if name]
        for match in matches
        if match and not match["room"].startswith("tests/")
    }


def differences(written: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> str:
    """Return how the rows differ, one line each."""
    lines = []
    for name in sorted({*written, *now}):
        old, new = set(written.get(name, ())), set(now.get(name, ()))
        if new - old:
            lines.append(f"{name}: also reruns {', '.join(sorted(new - old))}")
        if old - new:
            lines.append(f"{name}: no longer reruns {', '.join(sorted(old - new))}")
    return "\n".join(lines)


def is_grown(written: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> bool:
    """Report whether a room that has a row reruns more than the row says."""
    return any(set(now.get(name, ())) - set(written[name]) for name in written)


def _rows_of(now: Mapping[str, list[str]]) -> list[str]:
    return [f"| `{name}` | {', '.join(names)} |" for name, names in now.items()]


def command_reruns(arguments: argparse.Namespace) -> int:
    """Compare or write the table of docs/proofs.md."""
    peeked = _pants("--tag=[]", "peek", "::")
    now = reruns(json.loads(peeked))
    print("\n".join(_rows_of(now)))
    text = (ROOT / PROOFS).read_text()
    wrong = differences(rows(text), now)
    if arguments.write:
        kept = [
            line
            for line in text.splitlines()
            if not (match := _ROW.match(line)) or match["room"].startswith("tests/")
        ]
        (ROOT / PROOFS).write_text("\n".join([*kept, *_rows_of(now), ""]))
    elif wrong:
        print(
            f"\n{PROOFS} says otherwise; `reruns --write` replaces its rows:\n{wrong}"
        )
        return int(is_grown(rows(text), now))
    return 0


# What the batches took.


@dataclasses.dataclass(frozen=True)
class Duration:
    """The seconds of one batch, and of the longest of its tests."""

    batch: Batch
    seconds: float
    longest: str
    longest_s: float


def measured(batches_run: Iterable[Batch], folder: pathlib.Path) -> list[Duration]:
    """Return the durations of the batches from the JUnit reports of a folder."""
    times: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for report in sorted(folder.glob("*.xml")):
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):  # noqa: S314
            module = case.get("classname", "").replace(".", "/")
            name = f"{case.get('name')}"
            before = times[f"{module}.py"].get(name, 0.0)
            times[f"{module}.py"][name] = before + float(case.get("time", 0))
    durations = []
    for batch in batches_run:
        tests = [test for file in batch.files for test in times.get(file, {}).items()]
        if tests:
            name, longest_s = max(tests, key=lambda test: test[1])
            total = sum(seconds for _, seconds in tests)
            durations.append(Duration(batch, total, name, longest_s))
    return durations


def table(durations: Sequence[Duration]) -> str:
    """Return the table of a run; what took longer than its budget is marked."""
    lines = [f"{'batch':40} {'s':>6} {'budget':>6}  longest test"]
    for duration in sorted(durations, key=lambda duration: -duration.seconds):
        batch = duration.batch
        over = "OVER BUDGET  " if duration.seconds > batch.budget_s else ""
        lines.append(
            f"{batch.address:40} {duration.seconds:6.0f} {batch.budget_s:6}"
            f"  {over}{duration.longest} {duration.longest_s:.0f} s"
        )
    total = sum(duration.seconds for duration in durations)
    lines.append(f"{'sum (cached results with their old times)':40} {total:6.0f}")
    return "\n".join(lines)


def command_report(arguments: argparse.Namespace) -> int:
    """Print seconds against budgets; exceeding one is not a failure."""
    of_tier = [batch for batch in batches(ROOT) if batch.tier == arguments.tier]
    print(table(measured(of_tier, ROOT / REPORTS)))
    return 0


# The long tier.


@dataclasses.dataclass(frozen=True)
class Plan:
    """The batches of a run.

    forced: nothing has changed, so their results are cached. postponed: due, but there
    is no capacity left. unchanged: not due.
    """

    changed: tuple[Batch, ...]
    forced: tuple[Batch, ...]
    postponed: tuple[Batch, ...]
    unchanged: tuple[Batch, ...]


def plan(
    candidates: Sequence[Batch],
    touched: Iterable[str],
    green: Mapping[str, int],
    run: int,
    capacity_s: float = SLOTS * BOUND_S,
) -> Plan:
    """Decide which batches run: those touched first, then those not run for long.

    touched: addresses that a change reaches, those that did not fit the last time
    included. green: the number of the last run in which each batch was green; a batch
    that was never green counts as run least recently. run: the number of this run.
    """
    changed = set(touched)
    by_age = sorted(
        candidates, key=lambda batch: (green.get(batch.address, -1), batch.address)
    )
    due = [batch for batch in by_age if batch.address in changed]
    due += [
        batch
        for batch in by_age
        if batch.address not in changed
        and run - green.get(batch.address, -DUE_AFTER) >= DUE_AFTER
    ]
    chosen: list[Batch] = []
    postponed: list[Batch] = []
    for batch in due:
        fits = batch.budget_s <= capacity_s
        (chosen if fits else postponed).append(batch)
        capacity_s -= batch.budget_s if fits else 0
    return Plan(
        tuple(batch for batch in chosen if batch.address in changed),
        tuple(batch for batch in chosen if batch.address not in changed),
        tuple(postponed),
        tuple(batch for batch in by_age if batch not in due),
    )


@dataclasses.dataclass
class Record:
    """State kept between runs. commit: of the last run, whatever its result."""

    commit: str = ""
    run: int = 0
    green: dict[str, int] = dataclasses.field(default_factory=dict)
    left: list[str] = dataclasses.field(default_factory=list)


def record_file(env: Mapping[str, str]) -> pathlib.Path:
    """Return where the record is kept."""
    home = pathlib.Path(env.get("HOME", "/root"))
    cache = pathlib.Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    return cache / "mooring" / "ci" / "long.json"


def read_record(file: pathlib.Path) -> Record:
    """Return the record; an empty one when there is none, or it can not be read."""
    try:
        return Record(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return Record()


def write_record(file: pathlib.Path, record: Record) -> None:
    """Replace the record in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".new")
    part.write_text(json.dumps(dataclasses.asdict(record), indent=1))
    part.replace(file)


def green_files(lines: Iterable[str]) -> set[str]:
    """Return the test files whose process Pants reported as successful."""
    return {match[1] for line in lines if (match := _DONE.search(line))}


def has_failed(lines: Iterable[str]) -> bool:
    """Report whether Pants ended a test process as failed or timed out."""
    return any(_FAILED.search(line) for line in lines)


def run_bounded(command: Sequence[str], bound_s: float) -> tuple[int | None, list[str]]:
    """Run a command, print what it prints, and interrupt it after `bound_s`.

    Returns:
        Its exit code, None when it was interrupted; and its lines.
    """
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        watch = _Alarm(process, bound_s)
        assert process.stdout is not None  # noqa: S101 # as asked for above
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
        code = process.wait()
        is_late = watch.cancel()
    return (None if is_late else code), lines


class _Alarm:
    """Interrupts a process when its time is over, as Ctrl-C does."""

    def __init__(self, process: subprocess.Popen[str], after_s: float) -> None:
        self._process = process
        self._rang = False
        signal.signal(signal.SIGALRM, self._ring)
        signal.alarm(max(1, int(after_s)))

    def _ring(self, number: int, frame: object) -> None:
        del number, frame
        self._rang = True
        self._process.send_signal(signal.SIGINT)

    def cancel(self) -> bool:
        """Return whether it rang."""
        signal.alarm(0)
        return self._rang


def command_long(arguments: argparse.Namespace) -> int:
    """Run what is due in the long tier; what did not fit comes first next time."""
    del arguments
    file = record_file(os.environ)
    record = read_record(file)
    long_batches = [batch for batch in batches(ROOT) if batch.tier == LONG]
    known = {batch.address for batch in long_batches}
    touched = _touched(record.commit, long_batches) | (known & {*record.left})
    planned = plan(long_batches, touched, record.green, record.run + 1)
    _show(planned, record)
    end = time.monotonic() + BOUND_S
    code, green = 0, set[str]()
    for chosen, force in (
        (planned.changed, ()),
        (planned.forced, ("--test-force",)),
    ):
        if chosen and code == 0:
            result, lines = _test(chosen, force, end)
            green |= _green(chosen, result, lines)
            # Cut off at the bound is no failure, but what failed before it is one.
            code = int(has_failed(lines)) if result is None else result
    chosen_names = {batch.address for batch in (*planned.changed, *planned.forced)}
    unfinished = {
        *chosen_names,
        *(batch.address for batch in planned.postponed),
    } - green
    now = record.run + 1
    write_record(
        file,
        Record(
            _head() or record.commit,
            now,
            {**record.green, **dict.fromkeys(green, now)},
            sorted(unfinished),
        ),
    )
    print(table(measured([*planned.changed, *planned.forced], ROOT / REPORTS)))
    for name in sorted(unfinished):
        print(f"long tier: {name} did not run to its end and comes first next time")
    return code


def _test(
    chosen: Sequence[Batch], force: Sequence[str], end: float
) -> tuple[int | None, list[str]]:
    # The long tier asserts seconds: no more processes than cores.
    processes = f"--process-execution-local-parallelism={SLOTS}"
    words = ["./pants", "--tag=[]", "--no-dynamic-ui", "--test-report", processes]
    return run_bounded(
        [*words, *force, "test", *(batch.address for batch in chosen)],
        end - time.monotonic(),
    )


def _green(chosen: Iterable[Batch], code: int | None, lines: list[str]) -> set[str]:
    files = green_files(lines)
    return {
        batch.address
        for batch in chosen
        if code == 0 or any(file in files for file in batch.files)
    }


def _show(planned: Plan, record: Record) -> None:
    print(f"long tier, run {record.run + 1}; its record was made at {record.commit}")
    groups: Sequence[tuple[str, Sequence[Batch]]] = (
        ("runs, its inputs have changed", planned.changed),
        ("runs, it has not run for long", planned.forced),
        ("does not fit into this run", planned.postponed),
        ("does not run, nothing it reads has changed", planned.unchanged),
    )
    for what, group in groups:
        for batch in group:
            last = record.green.get(batch.address)
            history = "never green here" if last is None else f"green in run {last}"
            print(f"  {batch.address:36} {batch.budget_s:4} s  {what} ({history})")


def reached(listed: Iterable[str], candidates: Iterable[Batch]) -> set[str]:
    """Return the batches of which Pants lists a file.

    listed: addresses; the one of a file is "FOLDER/FILE:TARGET", without the target
    when that has the name of the folder.
    """
    files = {
        f"{file}:{name}" if name != folder.rpartition("/")[2] else file: batch.address
        for batch in candidates
        for folder, _, name in (batch.address.partition(":"),)
        for file in batch.files
    }
    return {files[address] for address in listed if address in files}


def _touched(commit: str, long_batches: Sequence[Batch]) -> set[str]:
    """Return the long batches that a change since the commit reaches.

    Without a commit: those of the newest commit; without any history: none.
    """
    for since in (commit, "HEAD^"):
        if since and _is_known(since):
            listed = _pants(
                "--tag=['long']",
                f"--changed-since={since}",
                "--changed-dependents=transitive",
                "list",
            )
            changed = _git("diff", "--name-only", since).splitlines()
            if containing := sorted(linking(changed, ROOT)):
                listed += _pants("--tag=[]", "dependents", "--transitive", *containing)
            return reached(listed.split(), long_batches)
    print("long tier: no history to compare with; what ran least recently runs")
    return set()


def _is_known(commit: str) -> bool:
    words = ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    return result.returncode == 0


def _head() -> str:
    return _git("rev-parse", "HEAD").strip()


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout


def _pants(*words: str) -> str:
    return subprocess.run(
        ["./pants", "--no-dynamic-ui", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def main(words: Sequence[str]) -> int:
    """Run one of the commands above; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("reruns")
    command.add_argument("--write", action="store_true")
    command.set_defaults(run=command_reruns)
    command = commands.add_parser("report")
    command.add_argument("tier", choices=(DEFAULT, LONG))
    command.set_defaults(run=command_report)
    commands.add_parser("long").set_defaults(run=command_long)
    arguments = parser.parse_args(words)
    began = datetime.datetime.now(datetime.UTC)
    code: int = arguments.run(arguments)
    print(f"took {(datetime.datetime.now(datetime.UTC) - began).seconds} s")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
