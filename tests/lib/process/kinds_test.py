"""Values on a Go command line."""

import hypothesis
import pytest
from hypothesis import strategies as st

from lib.process import kinds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m0s", 300),
        ("1h30m", 5400),
        ("100ms", 0.1),
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("-10s", -10),
        ("+10s", 10),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("1μs", 1e-6),
        ("1ns", 1e-9),
        ("1h1m1s1ms", 3661.001),
        ("10s10s", 20),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert kinds.DURATION.read(text) == pytest.approx(seconds, abs=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5 m",
        "m",
        "1d",
        "1.2.3s",
        ".s",
        "-",
        "5m ",
        " 5m",
        "1e3s",
        "٣s",
        "00",
        "9999999999h",
    ],
)
def test_what_go_refuses_as_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=".*"):
        kinds.DURATION.read(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (300, "5m0s"),
        (5400, "1h30m0s"),
        (0.1, "100ms"),
        (1.5, "1.5s"),
        (1e-6, "1us"),
        (0.0000015, "1.5us"),
        (-10, "-10s"),
        (3600, "1h0m0s"),
    ],
)
def test_durations_are_shown_as_go_shows_them(seconds: float, text: str) -> None:
    assert kinds.show_duration(seconds) == text


@hypothesis.given(st.integers(-(10**16), 10**16))
def test_a_shown_duration_reads_back_the_same(ns: int) -> None:
    text = kinds.show_duration(ns / 10**9)
    assert kinds.read_duration(text) == pytest.approx(ns / 10**9, abs=2e-9)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("010", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("0o17", 15),
    ],
)
def test_integers_may_have_a_base(text: str, number: int) -> None:
    assert kinds.read_integer(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.0", "08", "1 ", "9" * 20, "0x", "--1"])
def test_other_texts_are_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match=".*"):
        kinds.read_integer(text)


def test_limits_of_integers_and_durations_are_kept_and_told() -> None:
    port = kinds.integer(0, 65535)
    assert port.read("65535") == 65535
    assert port.expected == "a whole number from 0 to 65535"
    with pytest.raises(ValueError, match=".*"):
        port.read("65536")
    period = kinds.duration(1)
    assert period.read("1s") == 1
    assert "at least 1s" in period.expected
    with pytest.raises(ValueError, match=".*"):
        period.read("999ms")


def test_a_list_is_one_line_of_comma_separated_values() -> None:
    assert kinds.LIST.read('a,"b,c",d') == ("a", "b,c", "d")
    assert kinds.LIST.read("") == ()
    with pytest.raises(ValueError, match=".*"):
        kinds.LIST.read('"a')
    assert kinds.ARRAY.read("a,b") == ("a,b",)


def test_feature_gates_are_names_with_booleans() -> None:
    gates = kinds.BOOLEAN_MAP.read("A=true, B = false,,C=1")
    assert gates == {"A": True, "B": False, "C": True}
    for wrong in ("A", "A=yes", "=true"):
        with pytest.raises(ValueError, match=".*"):
            kinds.BOOLEAN_MAP.read(wrong)


def test_a_choice_is_one_of_the_words() -> None:
    kind = kinds.one_of("json", "text")
    assert kind.read("text") == "text"
    assert kind.expected == "one of json, text"
    with pytest.raises(ValueError, match=".*"):
        kind.read("xml")


@pytest.mark.parametrize("text", ["-1", "x", "", "2147483648", "0x4", "²"])
def test_a_level_is_a_plain_whole_number(text: str) -> None:
    assert kinds.LEVEL.read("10") == 10
    with pytest.raises(ValueError, match=".*"):
        kinds.LEVEL.read(text)
