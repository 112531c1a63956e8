"""YAML that a checksum is taken of is what Go would write."""

import pytest

from lib.discovery import go_yaml

# A text, and how it stands after `k: `. Source: what sigs.k8s.io/yaml 1.6.0 wrote.
TEXTS = [
    ("m1.large", "m1.large"),
    ("ubuntu 22.04", "ubuntu 22.04"),
    ("1.2.3", "1.2.3"),
    ("192.168.0.1", "192.168.0.1"),
    ("0x", "0x"),
    ("_1", "_1"),
    ("1e", "1e"),
    ("inf", "inf"),
    ("Ж", "Ж"),
    ("a'b", "a'b"),
    ("", '""'),
    ("~", '"~"'),
    ("null", '"null"'),
    ("true", '"true"'),
    ("True", '"True"'),
    ("yes", '"yes"'),
    ("y", '"y"'),
    ("N", '"N"'),
    ("off", '"off"'),
    (".inf", '".inf"'),
    (".nan", '".nan"'),
    ("1", '"1"'),
    ("-1", '"-1"'),
    ("1.5", '"1.5"'),
    ("5.", '"5."'),
    ("-.5", '"-.5"'),
    ("1e3", '"1e3"'),
    ("08", '"08"'),
    ("0777", '"0777"'),
    ("0x10", '"0x10"'),
    ("0o7", '"0o7"'),
    ("0b1", '"0b1"'),
    ("1_000", '"1_000"'),
    ("12:30:45", '"12:30:45"'),
    ("2026-01-31", '"2026-01-31"'),
    ("2026-01-31T12:00:00Z", '"2026-01-31T12:00:00Z"'),
    ("- a", "'- a'"),
    ("a: b", "'a: b'"),
    ("#b", "'#b'"),
    ("{a}", "'{a}'"),
    ("a ", "'a '"),
    ("a\nb", "|-\n  a\n  b"),
    ("a\n\nb\n", "|\n  a\n\n  b"),
    ("a\tb", '"a\\tb"'),
    ("😀", '"\\U0001F600"'),
    ("x" * 200, "x" * 200),
]


@pytest.mark.parametrize(("text", "written"), TEXTS)
def test_texts_have_the_quotes_of_go(text: str, written: str) -> None:
    """Plain where they can only be texts, quoted where they could be other things."""
    assert go_yaml.dump({"k": text}) == f"k: {written}\n"


def test_lists_and_maps_stand_as_go_puts_them() -> None:
    """Keys sorted, lists not indented, numbers plain."""
    document = {"b": ["1", "x"], "a": {"on": "c", "1": "d"}, "c": 20}
    assert go_yaml.dump(document) == (
        'a:\n  "1": d\n  "on": c\nb:\n- "1"\n- x\nc: 20\n'
    )
