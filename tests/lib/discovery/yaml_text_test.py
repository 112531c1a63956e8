"""YAML is read the way Kubernetes' tools read it."""

import pytest

from lib.discovery import yaml_text
from lib.process import config


def test_documents_are_read_as_through_json() -> None:
    """Keys are texts, times stay texts, empty documents are left out."""
    text = "---\n---\n1: a\ntrue: 2026-01-31T12:00:00Z\nsub: [{2: 3}]\n---\nb: no\n"
    assert yaml_text.read("file", text) == (
        {"1": "a", "true": "2026-01-31T12:00:00Z", "sub": [{"2": 3}]},
        {"b": False},
    )


BROKEN = [
    "password: *s3cr3t",
    'password: "s3cr3t\n',
    "a: [s3cr3t",
    "password: !!python/object:s3cr3t {}",
    "{" * 5000,
    "a: \x00s3cr3t",
    "a: !!bool s3cr3t",
    'a: "s3cr3t \\ud800"',
    "a: s3cr3t\na: b",
    "1: s3cr3t\n'1': b",
    '{"a": "s3cr3t", "a": 1}',
    "[s3cr3t]: {a: {}: b}",
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_can_not_be_read_is_not_shown(text: str) -> None:
    """One sentence with the file's name; never the text, which may be secret."""
    with pytest.raises(config.ConfigError) as caught:
        yaml_text.read("conf.yaml", text)
    message = str(caught.value)
    assert message.startswith("conf.yaml: invalid value: must be YAML that can be read")
    assert "s3cr3t" not in message
    assert caught.value.__suppress_context__


def test_json_may_be_indented_by_tabs() -> None:
    """As some tools write it, though YAML would not have it."""
    assert yaml_text.read("t", '{\n\t"a": [1, true]\n}\n') == ({"a": [1, True]},)


def test_merged_keys_are_no_repetition() -> None:
    """What an anchor gives may be said anew."""
    text = "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: !!timestamp later\n"
    (observed,) = yaml_text.read("t", text)
    assert observed == {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}, "e": "later"}


def test_the_place_is_told() -> None:
    """Line and column, counted from 1."""
    with pytest.raises(config.ConfigError, match=r"line 2, column 4"):
        yaml_text.read("conf.yaml", "a: b\nc: *d\n")


def test_what_is_written_reads_back() -> None:
    """The same thing twice stands there twice, without anchors."""
    shared = [{"a": "b"}]
    text = yaml_text.dump({"x": shared, "y": shared}, {"z": "ж"})
    assert "&" not in text
    assert yaml_text.read("t", text) == ({"x": shared, "y": shared}, {"z": "ж"})
