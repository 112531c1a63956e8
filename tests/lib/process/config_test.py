"""How configuration errors read."""

import pytest

from lib.process import config


def test_all_problems_are_in_the_message_one_per_line() -> None:
    with pytest.raises(config.ConfigError) as caught:
        config.require(
            [
                config.FieldProblem("a", "1", "a word"),
                config.FieldProblem("b", None, "a number"),
            ]
        )
    assert (
        str(caught.value)
        == 'a: invalid value "1": must be a word\nb: invalid value: must be a number'
    )


TEXTS = {
    'a: invalid value "x": must be a word': config.FieldProblem("a", "x", "a word"),
    'a: unsupported value "x": must be one of y, z': config.FieldProblem(
        "a", "x", "one of y, z"
    ),
    'a: invalid value "": must be a word': config.FieldProblem("a", "", "a word"),
    'a: invalid value "b\\nc\\"d": must be a word': config.FieldProblem(
        "a", 'b\nc"d', "a word"
    ),
    "a: invalid value: must be a word": config.FieldProblem("a", None, "a word"),
    "[Global] password: invalid value [redacted]: must be a word": config.FieldProblem(
        "[Global] password", "x", "a word"
    ),
    "[Global] password: not set": config.not_set("[Global] password"),
    "a: not set: must be a word": config.required("a", "", "a word"),
    "--cluster-nam: unknown flag: did you mean --cluster-name?": config.unknown(
        "--cluster-nam",
        "flag",
        config.did_you_mean("--cluster-nam", ["--cluster-name"]),
    ),
    "--x: unknown flag": config.unknown(
        "--x", "flag", config.did_you_mean("--x", ["--cluster-name"])
    ),
    "a: must not be set together with b": config.conflict("a", "b"),
    "--f: /nonexistent: no such file": config.unusable_file("--f", "/nonexistent"),
    "--f: /: is a directory": config.unusable_file("--f", "/"),
    "--f: /etc/passwd/x: not a directory": config.unusable_file("--f", "/etc/passwd/x"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_each_kind_of_problem_has_its_text(text: str) -> None:
    assert str(TEXTS[text]) == text


def test_a_value_is_cut_after_100_characters() -> None:
    assert config.quoted("x" * 100) == '"' + "x" * 100 + '"'
    assert config.quoted("x" * 101) == '"' + "x" * 100 + '..."'


def test_without_problems_nothing_happens() -> None:
    config.require([])


@pytest.mark.parametrize(
    "field", ["[Global] password", "--token", "OS_APPLICATION_CREDENTIAL_SECRET"]
)
def test_the_value_of_a_secret_is_never_shown(field: str) -> None:
    assert "hunter2" not in str(config.FieldProblem(field, "hunter2", "a text"))
    assert "hunter2" not in str(config.FieldProblem("x", "hunter2", "a text", True))


def test_a_secret_inside_a_harmless_value_is_taken_out() -> None:
    problem = config.FieldProblem("auth-url", "https://me:hunter2@cloud/", "a URL")
    assert "hunter2" not in str(problem)
    assert "cloud" in str(problem)
