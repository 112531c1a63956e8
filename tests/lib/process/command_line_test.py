"""The command made of a table of flags."""

import dataclasses
import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from lib.process import command_line, config, flags, kinds

PERIOD = flags.Flag("period", kinds.duration(1), 300.0, "How often a|b is done.")
OLD = flags.Flag("old", kinds.BOOLEAN, False, "Once.", no_effect="it is gone")
PROGRAM = command_line.Program(
    "a-daemon",
    "Does one thing.",
    "1.2.3",
    (PERIOD, OLD, command_line.VERBOSITY, command_line.VMODULE),
)


class Result(NamedTuple):
    """What a program has printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str


Run = Callable[[flags.Values], int]
Invoke = Callable[..., Result]


@pytest.fixture()
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Return a function that runs a program with a command line."""

    def call(
        *arguments: str,
        run: Run = lambda values: 0,
        program: command_line.Program = PROGRAM,
    ) -> Result:
        code = command_line.execute(program, run, arguments)
        return Result(code, *capsys.readouterr())

    return call


def test_the_values_reach_run_and_its_code_is_the_exit_code(invoke: Invoke) -> None:
    read: list[object] = []

    def run(values: flags.Values) -> int:
        read.extend((values[PERIOD], values[command_line.VERBOSITY]))
        return 7

    assert invoke("--period", "1m", "-v4", run=run).exit_code == 7
    assert read == [60.0, 4]


def test_a_wrong_command_line_ends_with_code_2_and_one_line_per_problem(
    invoke: Invoke,
) -> None:
    result = invoke("--period=0", "--what")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert (
        result.stderr
        == 'a-daemon: --period: invalid value "0": must be a duration such as 5m0s,'
        " at least 1s\na-daemon: --what: unknown flag: see --help\n"
    )


def test_what_can_be_read_is_judged_beside_what_can_not(invoke: Invoke) -> None:
    """The output has all problems, and no flag twice."""

    def judge(values: flags.Values) -> list[config.FieldProblem]:
        assert values[PERIOD] == 300.0, "the default of what can't be read"
        fields = ("--period", "--both")
        return [config.not_set(field, "another") for field in fields]

    judged = dataclasses.replace(PROGRAM, judge=judge)
    for words, is_invalid in ((["--period=0"], True), ([], False)):
        result = invoke(*words, program=judged)
        assert result.exit_code == 2
        lines = result.stderr.splitlines()
        assert lines[1] == "a-daemon: --both: not set: must be another"
        assert lines[0].startswith(
            "a-daemon: --period: " + ("invalid value" if is_invalid else "not set")
        )
        assert len(lines) == 2
    assert invoke("--version", program=judged).exit_code == 0


def test_a_config_error_of_run_is_told_the_same_way(invoke: Invoke) -> None:
    def run(values: flags.Values) -> int:
        raise config.ConfigError(
            [config.FieldProblem("[Global] region", None, "a region")]
        )

    result = invoke(run=run)
    assert result.exit_code == 2
    assert (
        result.stderr == "a-daemon: [Global] region: invalid value: must be a region\n"
    )


@pytest.mark.parametrize("argument", ["--help", "-h", "--help=true"])
def test_help_names_every_flag_with_type_and_default(
    argument: str, invoke: Invoke
) -> None:
    def run(values: flags.Values) -> int:
        raise AssertionError("must not run")

    result = invoke(argument, run=run)
    assert result.exit_code == 0
    assert "Does one thing." in result.stdout
    for text in ("--period duration", "default 5m0s", "-v, --v level", "Logging:"):
        assert text in result.stdout
    # What is off, 0 or empty by default needs no words.
    for text in ("default false", "default 0", "default []", "Accepted"):
        assert text not in result.stdout
    assert "2 more flags are accepted and ignored: --help-all" in result.stdout
    assert "--old" not in result.stdout
    whole = invoke("--help-all", run=run).stdout
    assert "Ignored flags of the reference:" in whole
    assert "Ignored: it is gone." in whole
    words = " ".join(result.stdout.split())
    assert "--version string Print version and exit." in words


def test_help_is_given_beside_mistakes(invoke: Invoke) -> None:
    result = invoke("--what", "--help")
    assert result.exit_code == 0


def test_help_is_wrapped_for_the_terminal(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 78 columns; a flag with a long name has a line of its own."""
    monkeypatch.setenv("COLUMNS", "200")
    name = "a-flag-with-a-name-of-many-words"
    long = flags.Flag(name, kinds.BOOLEAN, False, " ".join(["word"] * 40))
    program = dataclasses.replace(PROGRAM, table=(PERIOD, long))
    wide = invoke("--help", program=program).stdout
    assert wide.startswith("Usage: a-daemon [flags]\n\n  Does one thing.\n\nGeneral:\n")
    assert 70 < max(map(len, wide.splitlines())) <= 78
    assert f"\n  --{name}\n{' ' * 34}word word" in wide
    assert f"\n  --period duration{' ' * 15}How often a|b is done." in wide
    monkeypatch.setenv("COLUMNS", "60")
    narrow = invoke("--help", program=program).stdout
    assert max(map(len, narrow.splitlines())) <= 58
    assert narrow.split() == wide.split()


def test_main_ends_with_the_code_of_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a key interrupts it."""

    def interrupted(values: flags.Values) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["a-daemon", "--period=1m"])
    for run, code in ((lambda values: 7, 7), (interrupted, 1)):
        with pytest.raises(SystemExit) as ended:
            command_line.main(PROGRAM, run)
        assert ended.value.code == code


def test_help_for_a_reader_that_is_gone_ends_with_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in `openstack-ccm --help | true`: no traceback, neither now nor at the end."""
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr("sys.argv", ["a-daemon", "--help"])
    with open(writer, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        with pytest.raises(SystemExit) as ended:
            command_line.main(PROGRAM, lambda values: 0)
        assert ended.value.code == 1
        output.flush()


@pytest.mark.parametrize("argument", ["--version", "--version=raw"])
def test_version_is_printed(argument: str, invoke: Invoke) -> None:
    assert invoke(argument).stdout == "a-daemon 1.2.3\n"
    assert invoke("--version=false").stdout == ""


def test_the_reference_is_a_sorted_markdown_table() -> None:
    lines = command_line.reference(PROGRAM.table).splitlines()
    assert lines[:3] == ["## General", "", "| flag | type | default | meaning |"]
    assert r"| `--period` | duration | `5m0s` | How often a\|b is done. |" in lines
    ignored = lines.index("## Ignored flags of the reference")
    assert lines.index("## Logging") < ignored
    row = "| `--old` | boolean | `false` | **No effect:** it is gone. |"
    assert lines[ignored + 4] == row
    assert any(line.startswith("| `--v`, `-v` | level | `0` |") for line in lines)
