"""What is written to the log, and what never is."""

import io
import json
import logging
import re
import time
import warnings
from collections.abc import Callable, Mapping
from typing import cast

import pytest
import structlog

from lib.process import logs

Configure = Callable[..., Callable[[], list[Mapping[str, object]]]]


@pytest.fixture()
def configure(restored_logging: None) -> Configure:
    """Return a function that sets logging up and returns a reader of its entries."""
    del restored_logging

    def set_up(
        verbosity: int = 0, format: str = logs.JSON
    ) -> Callable[[], list[Mapping[str, object]]]:
        out = io.StringIO()
        logs.configure(logs.LogSettings("a-daemon", verbosity, format, out))
        return lambda: [json.loads(line) for line in out.getvalue().splitlines()]

    return set_up


def test_an_entry_is_one_line_of_json_with_fixed_keys(configure: Configure) -> None:
    read = configure()
    logs.get("packages").info("volume attached", volume_id="v1")
    (entry,) = read()
    assert list(entry) == [
        *("ts", "level", "logger", "component", "msg"),
        *("volume_id", "v"),
    ]
    assert abs(cast(float, entry["ts"]) - time.time() * 1000) < 60_000
    assert {key: at for key, at in entry.items() if key != "ts"} == {
        "msg": "volume attached",
        "level": "info",
        "component": "a-daemon",
        "logger": "packages",
        "volume_id": "v1",
        "v": 0,
    }


def test_an_error_is_err_and_its_traceback_stacktrace(configure: Configure) -> None:
    read = configure()
    try:
        leak()
    except ValueError as error:
        logs.get("x").error("request failed", error=str(error), exc_info=error)
    (entry,) = read()
    assert "ValueError" in str(entry["stacktrace"])
    assert str(entry["err"]).startswith("login failed")
    assert "v" not in entry


def test_text_has_the_header_of_klog(configure: Configure) -> None:
    """Source: k8s.io/klog/v2: Lmmdd hh:mm:ss.uuuuuu threadid file:line] msg."""
    out = io.StringIO()
    configure()
    logs.configure(logs.LogSettings("a-daemon", format=logs.TEXT, out=out))
    logs.get("lib.kube").warning("watch failed", error='a "b"', count=3, key=None)
    pattern = (
        r"W[0-9]{4} [0-9:]{8}\.[0-9]{6} +[0-9]+ lib\.kube\] "
        r'"watch failed" err="a \\"b\\"" count=3 key=null\n'
    )
    assert re.fullmatch(pattern, out.getvalue()), out.getvalue()


def test_a_logger_made_before_configure_follows_it(configure: Configure) -> None:
    log = logs.get("early")
    read = configure()
    log.warning("now")
    assert read()[0]["logger"] == "early"


@pytest.mark.parametrize(("verbosity", "shown"), [(0, 1), (3, 1), (4, 2), (10, 2)])
def test_debug_is_shown_from_v_4_on(
    configure: Configure, verbosity: int, shown: int
) -> None:
    read = configure(verbosity)
    logs.get("x").debug("pass")
    logs.get("x").info("action")
    assert len(read()) == shown


def test_bound_context_is_in_every_entry_of_a_pass(configure: Configure) -> None:
    read = configure()
    with structlog.contextvars.bound_contextvars(controller="nodes", key="n1"):
        logs.get("x").info("inside")
    logs.get("x").info("outside")
    assert (read()[0]["controller"], read()[0]["key"]) == ("nodes", "n1")
    assert "key" not in read()[1]


def test_third_parties_go_the_same_way_from_warning_on(configure: Configure) -> None:
    read = configure(10)
    logging.getLogger("urllib3").info("chatter")
    logging.getLogger("urllib3").warning("pool is %s", "full")
    (entry,) = read()
    assert entry["msg"] == "pool is full"
    assert entry["level"] == "warning"
    assert entry["logger"] == "urllib3"
    assert entry["component"] == "a-daemon"


def test_python_warnings_are_log_entries(configure: Configure) -> None:
    read = configure()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old ways", stacklevel=1)
    assert "old ways" in str(read()[0]["msg"])


def leak() -> None:
    password = "hunter2"
    raise ValueError(f"login failed, Authorization: Bearer {password}")


@pytest.mark.parametrize("format", [logs.TEXT, logs.JSON])
@pytest.mark.parametrize("by_library", [True, False])
def test_no_way_of_logging_shows_a_secret(
    configure: Configure, format: str, by_library: bool
) -> None:
    """Not by key, nested, in a text, in a traceback, nor by a local variable."""
    configure()
    out = io.StringIO()
    logs.configure(logs.LogSettings("a-daemon", format=format, out=out))
    try:
        leak()
    except ValueError as error:
        if by_library:
            logging.getLogger("lib").error("Bearer hunter2", exc_info=error)
        else:
            logs.get("x").error(
                "see https://me:hunter2@cloud/",
                exc_info=error,
                password="hunter2",
                token=22222,
                request={"headers": [{"X-Auth-Token": "hunter2"}]},
                seen=("Bearer hunter2", b"Bearer hunter2"),
            )
    assert "hunter2" not in out.getvalue().replace('password = "hunter2"', "")
    assert "22222" not in out.getvalue()
    assert "ValueError" in out.getvalue()
    assert "[redacted]" in out.getvalue()


def test_false_and_none_under_a_secret_name_stay(configure: Configure) -> None:
    read = configure()
    logs.get("x").info("x", has_token=False, secret=None, secret_name="s")
    (entry,) = read()
    assert (entry["has_token"], entry["secret"]) == (False, None)
    assert entry["secret_name"] == "s"


def test_what_json_can_not_hold_is_shown_as_text(configure: Configure) -> None:
    read = configure()
    logs.get("x").info("x", items={"b"}, thing=io.StringIO)
    assert read()[0]["items"] == ["b"]
