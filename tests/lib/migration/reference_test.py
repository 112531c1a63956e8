"""Flags of a command line, as the programs of the reference read them."""

import pytest

from lib.migration import reference


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--cluster=a"], "a"),
        (["-cluster=a"], "a"),
        (["--cluster", "a"], "a"),
        (["--cluster", "--other=b"], "true"),
        (["--cluster"], "true"),
        (["--cluster-name=a"], ""),
        (["cluster=a"], ""),
    ],
)
def test_the_value_of_a_flag(words: list[str], value: str) -> None:
    assert reference.flag(words, "cluster") == value
