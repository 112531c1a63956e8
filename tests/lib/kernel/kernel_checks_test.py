"""Exit codes of fsck are distinguished."""

import os
import pathlib

import pytest

from lib.kernel.linux import commands
from lib.kernel.linux import kernel as linux_kernel
from lib.kernel.model import Check


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(0, Check.CLEAN, id="no errors"),
        pytest.param(1, Check.CORRECTED, id="errors were corrected"),
        pytest.param(2, Check.CORRECTED, id="corrected; of a root file system: reboot"),
        pytest.param(4, Check.UNCORRECTED, id="errors are left"),
        pytest.param(5, Check.UNCORRECTED, id="some were corrected, others are left"),
        pytest.param(8, Check.INCONCLUSIVE, id="operational error"),
        pytest.param(12, Check.INCONCLUSIVE, id="operational error besides others"),
        pytest.param(16, Check.INCONCLUSIVE, id="usage"),
        pytest.param(32, Check.INCONCLUSIVE, id="cancelled"),
        pytest.param(128, Check.INCONCLUSIVE, id="library"),
        pytest.param(None, Check.INCONCLUSIVE, id="no fsck in the image"),
    ],
)
def test_exit_codes_of_fsck(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int | None,
    expected: Check,
) -> None:
    """A program named fsck ends with each code. Source: fsck(8), "EXIT STATUS"."""
    monkeypatch.setattr(commands, "_SEARCH", "")
    if code is not None:
        program = tmp_path / "fsck"
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
    runner = commands.Commands({"PATH": str(tmp_path)})
    kernel = linux_kernel.LinuxKernel(runner, tmp_path, tmp_path)
    assert kernel.check_file_system(os.devnull) is expected
