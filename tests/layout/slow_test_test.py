"""A test that takes minutes is explained on the terminal, and goes on."""

import os
import pathlib
import subprocess
import sys

CONFTEST = """
import tests.conftest as every

every.EXPLAINED_S = 0.2
from tests.conftest import pytest_configure, pytest_runtest_protocol
"""
SLOW = """
import time


def test_slow():
    time.sleep(1)


def test_quick():
    pass
"""


def test_the_stacks_of_a_slow_test_are_announced_as_no_failure(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "some_test.py").write_text(SLOW)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npython_files = *_test.py\nfaulthandler_timeout = 0.5\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    shown = done.stderr
    assert done.returncode == 0, done.stdout + shown
    announced = shown.index("some_test.py::test_slow: not finished after 0.2 s")
    assert "no failure" in shown[announced:]
    assert shown.index("Timeout (0:00:00.5") > announced
    assert "test_quick" not in shown
