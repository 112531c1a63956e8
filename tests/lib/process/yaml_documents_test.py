"""YAML is read the way Kubernetes' tools read it."""

from collections.abc import Callable

import pytest

from lib.discovery import yaml_text
from lib.process import config, yaml_documents


def test_documents_are_read_as_through_json() -> None:
    """Keys are texts, times stay texts, empty documents are left out."""
    text = "---\n---\n1: a\ntrue: 2026-01-31T12:00:00Z\nsub: [{2: 3}]\n---\nb: no\n"
    assert yaml_documents.read("file", text) == (
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
        yaml_documents.read("conf.yaml", text)
    message = str(caught.value)
    assert message.startswith("conf.yaml: invalid value: must be YAML that can be read")
    assert "s3cr3t" not in message
    assert caught.value.__suppress_context__


def test_json_may_be_indented_by_tabs() -> None:
    """As some tools write it, though YAML would not have it."""
    assert yaml_documents.read("t", '{\n\t"a": [1, true]\n}\n') == ({"a": [1, True]},)


def test_merged_keys_are_no_repetition() -> None:
    """A key of an anchor may be overridden."""
    text = "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: !!timestamp later\n"
    (observed,) = yaml_documents.read("t", text)
    assert observed == {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}, "e": "later"}


def test_the_place_is_told() -> None:
    """Line and column, counted from 1."""
    with pytest.raises(config.ConfigError, match=r"line 2, column 4"):
        yaml_documents.read("conf.yaml", "a: b\nc: *d\n")


def test_what_is_written_reads_back() -> None:
    """The same thing twice stands there twice, without anchors."""
    shared = [{"a": "b"}]
    text = yaml_text.dump({"x": shared, "y": shared}, {"z": "ж"})
    assert "&" not in text
    assert yaml_documents.read("t", text) == ({"x": shared, "y": shared}, {"z": "ж"})


KUBECTL = {
    "11:22:33:44:55:10": "11:22:33:44:55:10",
    "1:30": "1:30",
    "1:30.5": "1:30.5",
    "2026-13-45": "2026-13-45",
    "2026-01-31": "2026-01-31",
    "0123": 83,
    "0o17": 15,
    "1e3": 1000.0,
    "1_000": 1000,
    "yes": True,
    "~": None,
    "12": 12,
    "1.5": 1.5,
    "0x1F": 31,
    "1.2.3": "1.2.3",
}
TEXTS = (
    *("0123", "yes", "No", "on", "1e3", "12", "1.50", "0x1F", "2026-13-45", "1:30"),
    *(".inf", "=", "TRUE", "1_000", "!!int 5", "!!float x", "!!timestamp 1"),
)


@pytest.mark.parametrize("text", KUBECTL)
def test_scalars_are_typed_as_kubectl_does(text: str) -> None:
    (document,) = yaml_documents.read("f", f"a: {text}\n")
    assert isinstance(document, dict)
    assert repr(document["a"]) == repr(KUBECTL[text])


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_the_characters_as_written(text: str) -> None:
    (document,) = yaml_documents.texts("f", f"a: {text}\n")
    assert document == {"a": text.rpartition("!")[2].partition(" ")[2] or text}


@pytest.mark.parametrize("text", ["", "~", "null", "Null"])
def test_an_empty_text_is_none(text: str) -> None:
    assert yaml_documents.texts("f", f"a: {text}\n") == ({"a": None},)


@pytest.mark.parametrize("text", BROKEN[:6])
def test_broken_texts_are_one_message(text: str) -> None:
    with pytest.raises(config.ConfigError) as caught:
        yaml_documents.texts("conf.yaml", text)
    assert "s3cr3t" not in str(caught.value)


def test_a_key_that_is_set_twice_is_named() -> None:
    with pytest.raises(config.ConfigError, match='key "image" of the map in line 1'):
        yaml_documents.read("f", "image: s3cr3t\nimage: b\n")


def aliases(levels: int) -> str:
    """Return lists of nine aliases each, which stand for 9 ** levels values."""
    lines = ["a0: &a0 s3cr3t"]
    for level in range(1, levels + 1):
        items = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{items}]")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("read", [yaml_documents.read, yaml_documents.texts])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(aliases(12), "aliases stand for more", id="aliases of aliases"),
        pytest.param("a: &a [*a]\n", "aliases stand for more", id="a list in itself"),
        pytest.param("a: &a {b: *a}\n", "", id="a map in itself"),
        pytest.param("a: !!set {x, y}\n", "JSON lacks: set", id="a set"),
        pytest.param("a: !!omap [x: 1]\n", "", id="an ordered map"),
        pytest.param("a: !!pairs [x: 1]\n", "", id="pairs"),
    ],
)
def test_what_json_can_not_have_is_refused(
    read: Callable[[str, str], object], text: str, reason: str
) -> None:
    with pytest.raises(config.ConfigError) as caught:
        read("f", text)
    assert reason in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("text", [".nan", "-.inf", ".INF", "1e400", "!!binary aGk="])
def test_numbers_and_bytes_that_json_lacks(text: str) -> None:
    with pytest.raises(config.ConfigError, match="not finite|JSON lacks: bytes"):
        yaml_documents.read("f", f"a: {text}\n")


def test_some_aliases_are_read() -> None:
    (observed,) = yaml_documents.read("f", aliases(4))
    assert isinstance(observed, dict)
    assert len(observed["a4"]) == 9
