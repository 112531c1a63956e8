"""The command made of a table of flags."""

import dataclasses
from collections.abc import Callable

import pytest
from click import testing

from lib.process import command_line, config, flags, kinds

PERIOD = flags.Flag("period", kinds.duration(1), 300.0, "How often a|b is done.")
OLD = flags.Flag("old", kinds.BOOLEAN, False, "Once.", no_effect="it is gone")
PROGRAM = command_line.Program(
    "a-daemon",
    "Does one thing.",
    "1.2.3",
    (PERIOD, OLD, command_line.VERBOSITY, command_line.VMODULE),
)


def invoke(
    *arguments: str, run: Callable[[flags.Values], int] = lambda values: 0
) -> testing.Result:
    return testing.CliRunner().invoke(
        command_line.command(PROGRAM, run), list(arguments)
    )


def test_the_values_reach_run_and_its_code_is_the_exit_code() -> None:
    seen: list[object] = []

    def run(values: flags.Values) -> int:
        seen.extend((values[PERIOD], values[command_line.VERBOSITY]))
        return 7

    assert invoke("--period", "1m", "-v4", run=run).exit_code == 7
    assert seen == [60.0, 4]


def test_a_wrong_command_line_ends_with_code_2_and_one_line_per_problem() -> None:
    result = invoke("--period=0", "--what")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "a-daemon: --period: '0': want a duration such as 5m0s, of 1s at least\n"
        "a-daemon: --what: want a known flag (see --help)\n"
    )


def test_what_can_be_read_is_judged_beside_what_can_not() -> None:
    """One look at the output is enough; no flag is told twice."""

    def judge(values: flags.Values) -> list[config.FieldProblem]:
        assert values[PERIOD] == 300.0, "the default of what can't be read"
        fields = ("--period", "--both")
        return [config.FieldProblem(field, None, "another") for field in fields]

    judged = dataclasses.replace(PROGRAM, judge=judge)
    command = command_line.command(judged, lambda values: 0)
    for words, told in ((["--period=0"], 1), ([], 0)):
        result = testing.CliRunner().invoke(command, words)
        assert result.exit_code == 2
        lines = result.stderr.splitlines()
        assert lines[1] == "a-daemon: --both: want another"
        assert lines[0].startswith("a-daemon: --period: " + ("'0'" if told else "want"))
        assert len(lines) == 2
    assert testing.CliRunner().invoke(command, ["--version"]).exit_code == 0


def test_a_config_error_of_run_is_told_the_same_way() -> None:
    def run(values: flags.Values) -> int:
        raise config.ConfigError(
            [config.FieldProblem("[Global] region", None, "a region")]
        )

    result = invoke(run=run)
    assert result.exit_code == 2
    assert result.stderr == "a-daemon: [Global] region: want a region\n"


@pytest.mark.parametrize("argument", ["--help", "-h", "--help=true"])
def test_help_names_every_flag_with_type_and_default(argument: str) -> None:
    def run(values: flags.Values) -> int:
        raise AssertionError("must not run")

    result = invoke(argument, run=run)
    assert result.exit_code == 0
    assert "Does one thing." in result.stdout
    for text in ("--period duration", "default 5m0s", "-v, --v level", "it is gone"):
        assert text in result.stdout
    # What is off, 0 or empty by default needs no words.
    for text in ("default false", "default 0", "default []", "Accepted"):
        assert text not in result.stdout
    assert "Ignored: it is gone." in result.stdout
    words = " ".join(result.stdout.split())
    assert "--version string Print version and exit." in words


def test_help_is_given_beside_mistakes() -> None:
    result = invoke("--what", "--help")
    assert result.exit_code == 0


@pytest.mark.parametrize("argument", ["--version", "--version=raw"])
def test_version_is_printed(argument: str) -> None:
    assert invoke(argument).stdout == "a-daemon 1.2.3\n"
    assert invoke("--version=false").stdout == ""


def test_the_reference_is_a_sorted_markdown_table() -> None:
    lines = command_line.reference(PROGRAM.table).splitlines()
    assert lines[0] == "| flag | type | default | meaning |"
    assert lines[2] == "| `--old` | boolean | `false` | **No effect:** it is gone. |"
    assert lines[3] == r"| `--period` | duration | `5m0s` | How often a\|b is done. |"
    assert lines[4].startswith("| `--v`, `-v` | level | `0` |")
