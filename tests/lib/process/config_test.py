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
    assert str(caught.value) == "a: '1': want a word\nb: want a number"


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
