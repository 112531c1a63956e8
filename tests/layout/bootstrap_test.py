"""`./pants` starts with Python 3.11 alone, where package registries can be reached."""

import os
import pathlib
import shutil
import subprocess

import pytest

FILES = (
    "pants",
    "pants.toml",
    ".mypy.ini",
    ".pytest.ini",
    ".ruff.toml",
    *(
        f"build-support/{name}"
        for name in (
            "debian_python.sh",
            "debian_python.sha256",
            "headers.sh",
            "macros.build",
            "pants.lock.txt",
            "processes.sh",
            "sandboxes.sh",
            "uv.sh",
        )
    ),
)


def without_python39(path: str) -> str:
    """Return a search path without folders in which a CPython 3.9 is found."""
    folders = [folder for folder in path.split(os.pathsep) if folder]
    return os.pathsep.join(
        folder
        for folder in folders
        if not (pathlib.Path(folder) / "python3.9").exists()
    )


def test_pants_starts_where_only_apt_has_its_python(tmp_path: pathlib.Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get was not found: this machine is neither Debian nor Ubuntu")
    tree = tmp_path / "tree"
    for name in FILES:
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, target)
    env = {
        **os.environ,
        "PATH": without_python39(os.environ["PATH"]),
        "PANTS_SETUP_CACHE": str(tmp_path / "cache"),
        "PYENV_ROOT": str(tmp_path / "none"),
        "UV_OFFLINE": "1",
    }
    env.pop("PANTS_BOOTSTRAP_PYTHON", None)
    done = subprocess.run(
        ["./pants", "--no-pantsd", "--version"],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stderr)
    assert done.stdout.strip() == "2.17.1"
    assert "unpacking the one of Debian 11" in done.stderr
    assert "debian-python-3.9.2/usr/bin/python3.9" in done.stderr
