"""A child process: limits on time and output, its group, a cancellation."""

import pathlib
import sys
import threading
import time

import psutil
import pytest

from lib.helm import child

ENV = {"PATH": "/usr/bin:/bin"}


def run(
    code: str, limits: child.Limits, cancel: threading.Event | None = None
) -> child.Ended:
    arguments = (sys.executable, "-c", code)
    return child.run(arguments, ENV, limits, cancel or threading.Event())


def test_output_and_exit_code_are_returned() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    ended = run(code, child.Limits(20))
    assert (ended.code, ended.output, ended.errors) == (3, b"out\n", "err\n")
    assert (ended.timed_out, ended.canceled, ended.cut) == (False, False, False)


def test_output_is_bounded() -> None:
    code = "import sys; sys.stdout.write('o' * 10**6); sys.stderr.write('e' * 10**6)"
    ended = run(code, child.Limits(20, output_max=1000))
    assert len(ended.output) == 1000
    assert ended.cut
    assert len(ended.errors) <= child.KEPT_MAX + 10


@pytest.mark.parametrize("ignores", [False, True])
def test_the_whole_group_ends_with_the_time(
    ignores: bool, tmp_path: pathlib.Path
) -> None:
    """A grandchild that would sleep on is gone; one that ignores SIGTERM is killed."""
    pid = tmp_path / "pid"
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    code = (
        f"{ignore if ignores else ''}import subprocess, sys;"
        f"p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(pid)!r}, 'w').write(str(p.pid)); p.wait()"
    )
    began = time.monotonic()
    ended = run(code, child.Limits(1.5, grace_s=0.1))
    assert ended.timed_out
    assert ended.code != 0
    assert time.monotonic() - began < 10
    grandchild = int(pid.read_text())
    deadline = time.monotonic() + 5
    while psutil.pid_exists(grandchild) and time.monotonic() < deadline:
        if psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        assert not psutil.pid_exists(grandchild)


def test_a_cancellation_ends_it() -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    ended = run("import time; time.sleep(60)", child.Limits(50), cancel)
    assert ended.canceled
    assert time.monotonic() - began < 10


def test_the_child_is_killed_with_its_parent(tmp_path: pathlib.Path) -> None:
    """A killed controller leaves no helm behind that goes on writing."""
    pid = tmp_path / "pid"
    inner = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); "
    outer = (
        "import sys, threading; sys.path[:0] = " + repr(sys.path) + ";"
        "from lib.helm import child;"
        f"child.run([sys.executable, '-c', {inner + 'time.sleep(60)'!r}], {{}},"
        " child.Limits(50), threading.Event())"
    )
    import subprocess

    parent = subprocess.Popen([sys.executable, "-c", outer])
    deadline = time.monotonic() + 20
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    started = int(pid.read_text())
    parent.kill()
    parent.wait()
    while time.monotonic() < deadline and psutil.pid_exists(started):
        if psutil.Process(started).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    assert not psutil.pid_exists(started)
