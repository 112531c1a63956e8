"""The command line, read as pflag reads it."""

import pytest

from lib.process import config, flags, kinds

CONFIG = flags.Flag("cloud-config", kinds.TEXT, "", "Where the cloud is described.")
ROUTES = flags.Flag("configure-cloud-routes", kinds.BOOLEAN, True, "Make routes.")
PERIOD = flags.Flag("node-monitor-period", kinds.DURATION, 5.0, "How often.")
PORT = flags.Flag("secure-port", kinds.integer(0, 65535), 10258, "Where to serve.")
NAMES = flags.Flag[tuple[str, ...]]("controllers", kinds.LIST, ("*",), "Which.")
GATES = flags.Flag("feature-gates", kinds.BOOLEAN_MAP, {}, "Switches.")
LEVEL = flags.Flag("v", kinds.LEVEL, 0, "How much.", short="v")
QUIET = flags.Flag("quiet", kinds.BOOLEAN, False, "Say little.", short="q")
TOKEN = flags.Flag("bearer", kinds.integer(), 0, "A secret.", is_secret=True)
OLD = flags.Flag(
    "allow-untagged-cloud", kinds.BOOLEAN, False, "Once.", no_effect="tags are unused"
)
TABLE: tuple[flags.Flag[object], ...] = (
    CONFIG,
    ROUTES,
    PERIOD,
    PORT,
    NAMES,
    GATES,
    LEVEL,
    QUIET,
    TOKEN,
    OLD,
)


def parse(*arguments: str) -> flags.Values:
    return flags.parse(TABLE, arguments)


def problems(*arguments: str) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        parse(*arguments)
    return [str(problem) for problem in caught.value.problems]


def test_without_arguments_every_flag_has_its_default() -> None:
    values = parse()
    assert values[CONFIG] == ""
    assert values[ROUTES] is True
    assert values[PERIOD] == 5.0
    assert values[NAMES] == ("*",)
    assert not values.is_given(PERIOD)


def test_a_value_follows_an_equals_sign_or_a_blank() -> None:
    assert parse("--cloud-config=/a")[CONFIG] == "/a"
    assert parse("--cloud-config", "/a")[CONFIG] == "/a"
    assert parse("--cloud-config=a=b")[CONFIG] == "a=b"
    assert parse("--cloud-config=")[CONFIG] == ""
    assert parse("--cloud-config", "--secure-port")[CONFIG] == "--secure-port"


def test_the_last_value_wins_but_all_must_be_right() -> None:
    assert parse("--secure-port=1", "--secure-port=2")[PORT] == 2
    assert len(problems("--secure-port=x", "--secure-port=2")) == 1


@pytest.mark.parametrize("word", ["true", "1", "t", "T", "TRUE", "True"])
def test_a_boolean_is_true_alone_or_by_a_word_after_equals(word: str) -> None:
    assert parse("--quiet")[QUIET] is True
    assert parse(f"--quiet={word}")[QUIET] is True


@pytest.mark.parametrize("word", ["false", "0", "f", "F", "FALSE", "False"])
def test_a_boolean_is_false_by_a_word_after_equals_only(word: str) -> None:
    assert parse(f"--configure-cloud-routes={word}")[ROUTES] is False
    (problem,) = problems("--configure-cloud-routes", word)
    assert problem.startswith(f'unexpected argument: "{word}": must be a flag')


@pytest.mark.parametrize("word", ["yes", "no", "on", "", "tRUE", "2"])
def test_other_words_are_no_booleans(word: str) -> None:
    (problem,) = problems(f"--quiet={word}")
    assert problem == f'--quiet: invalid value "{word}": must be true or false'


def test_underscores_and_hyphens_in_a_name_are_the_same() -> None:
    assert parse("--cloud_config=/a_b")[CONFIG] == "/a_b"
    assert parse("--node_monitor-period", "1s")[PERIOD] == 1.0


def test_a_name_is_written_out_in_full_and_in_its_own_case() -> None:
    assert problems("--cloud-conf=/a") == [
        "--cloud-conf: unknown flag: did you mean --cloud-config?"
    ]
    assert problems("--Quiet") == ["--Quiet: unknown flag: did you mean --quiet?"]


def test_a_long_name_with_one_hyphen_is_refused() -> None:
    (problem,) = problems("-cloud-config=/a")
    assert problem == "-cloud-config: unknown flag: did you mean --cloud-config?"


def test_an_unknown_flag_takes_the_word_after_it_along() -> None:
    assert len(problems("--nothing-of-ours", "value")) == 1
    assert len(problems("--nothing-of-ours=x", "value")) == 2


def test_arguments_that_are_no_flags_are_refused() -> None:
    assert len(problems("start")) == 1
    assert len(problems("--quiet", "--", "--cloud-config=/a")) == 1
    assert len(problems("-")) == 1


def test_empty_arguments_are_nothing() -> None:
    """Templates leave them behind; the reference lets them pass."""
    assert parse("", "--quiet")[QUIET] is True


def test_a_flag_that_lacks_its_value_is_refused() -> None:
    assert problems("--cloud-config") == ["--cloud-config: not set: must be a string"]
    assert problems("-v") == ["--v: not set: must be a whole number from 0"]


@pytest.mark.parametrize(
    "arguments",
    [("-v4",), ("-v=4",), ("-v", "4"), ("--v=4",), ("--v", "4"), ("-qv4",), ("-qv=4",)],
)
def test_levels_have_all_spellings_of_a_short_flag(arguments: tuple[str, ...]) -> None:
    assert parse(*arguments)[LEVEL] == 4


def test_lists_and_maps_grow_and_replace_their_default() -> None:
    values = parse("--controllers=a,b", "--controllers", "-c")
    assert values[NAMES] == ("a", "b", "-c")
    values = parse("--feature-gates=A=true,B=false", "--feature-gates=B=true")
    assert values[GATES] == {"A": True, "B": True}


def test_all_problems_are_told_at_once_in_order() -> None:
    problems_found = problems(
        "--secure-port=70000", "--node-monitor-period=5", "--what"
    )
    assert problems_found == [
        '--secure-port: invalid value "70000": must be a whole number from 0 to 65535',
        (
            '--node-monitor-period: invalid value "5": must be a duration such as 5m0s,'
            " 1h30m, 100ms or 0"
        ),
        "--what: unknown flag: see --help",
    ]


def test_the_value_of_a_secret_flag_is_not_shown() -> None:
    (problem,) = problems("--bearer=hunter2")
    assert "hunter2" not in problem


def test_values_know_only_the_flags_of_their_table() -> None:
    other = flags.Flag("other", kinds.TEXT, "", "Not in the table.")
    with pytest.raises(KeyError):
        parse()[other]


class LogStub:
    """Keeps warnings."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, str, str]] = []

    def warning(self, event: str, *, flag: str, reason: str) -> None:
        self.warnings.append((event, flag, reason))


def test_a_flag_without_effect_is_warned_of_once_and_only_when_given() -> None:
    log = LogStub()
    flags.warn(parse(), log)
    assert log.warnings == []
    flags.warn(parse("--allow-untagged-cloud", "--allow-untagged-cloud=false"), log)
    assert log.warnings == [
        ("flag has no effect", "--allow-untagged-cloud", "tags are unused")
    ]
