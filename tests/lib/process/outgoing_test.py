"""Who waits longer than two seconds learns for which server."""

import time

import pytest

from lib.process import outgoing

NOW = time.monotonic()


def look(watcher: outgoing.Watcher, times: int = 3) -> None:
    for _ in range(times):
        watcher.look()


def test_a_server_is_named_once_after_two_seconds() -> None:
    lines: list[str] = []
    now = [NOW]
    watcher = outgoing.Watcher(lines.append, clock=lambda: now[0])
    with outgoing.to("https://user:secret@keystone.example:5000/v3/auth?x=1", 30):
        now[0] = time.monotonic() + 1.9
        look(watcher)
        assert lines == []
        now[0] = time.monotonic() + 2.1
        look(watcher)
    now[0] += 60
    look(watcher)
    assert lines == ["waiting for https://keystone.example:5000 (30 s at most)"]


def test_each_server_has_its_line() -> None:
    lines: list[str] = []
    watcher = outgoing.Watcher(lines.append, clock=lambda: time.monotonic() + 5)
    urls = ("https://127.0.0.1:6443/api", "http://nova.example/v2.1/servers")
    with outgoing.to(urls[0], 10), outgoing.to(urls[1], 60), outgoing.to(urls[1], 60):
        look(watcher)
    assert lines == [
        "waiting for https://127.0.0.1:6443 (10 s at most)",
        "waiting for http://nova.example (60 s at most)",
    ]


def test_a_request_that_failed_is_not_waited_for() -> None:
    with pytest.raises(OSError, match="refused"), outgoing.to("http://a", 1):
        raise OSError("refused")
    assert outgoing.waiting() == ()
