"""`./pants` starts with Python 3.11 alone, where package registries can be reached.

And what it installs is built without headers of the system.
"""

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
            "headers_env.sh",
            "macros.build",
            "pants.lock.txt",
            "processes.sh",
            "sandboxes.sh",
            "uv.sh",
        )
    ),
)

SDK = "ovirt-engine-sdk-python"
WITHOUT_HEADERS = """
mkdir "$LAYERS/empty"
for folder in /usr/include/libxml2 /usr/include/python3.11; do
  if [ -d "$folder" ]; then mount --bind "$LAYERS/empty" "$folder"; fi
done
for folder in /usr/lib/*-linux-gnu; do
  own="$LAYERS/own/$(basename "$folder")" links="$LAYERS/links/$(basename "$folder")"
  mkdir -p "$own" "$links"
  mount --rbind "$folder" "$own"
  ln -s "$own"/* "$links"
  rm -f "$links/libxml2.so" "$links/libxml2.a"
  mount --bind "$links" "$folder"
done
source build-support/headers_env.sh
echo "headers: $headers"
/usr/bin/python3.11 -m venv "$PANTS_SETUP_CACHE/venv"
cd "$PANTS_SETUP_CACHE/venv/bin"
./pip install --no-deps --no-cache-dir --no-binary "$SDK" "$SDK" pycurl
./python -c "from ovirtsdk4 import xml; print(xml.__file__)"
"""
"""The SDK is built and imported where no package has installed headers."""


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


def test_the_sdk_is_built_where_the_system_has_no_headers(
    tmp_path: pathlib.Path,
) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get was not found: this machine is neither Debian nor Ubuntu")
    layers = tmp_path / "layers"
    layers.mkdir()
    cache = tmp_path / "cache"
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-euo", "pipefail", "-c", WITHOUT_HEADERS],
        env={
            **os.environ,
            "LAYERS": str(layers),
            "PANTS_SETUP_CACHE": str(cache),
            "SDK": SDK,
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout, done.stderr)
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"files cannot be hidden on this machine: {done.stderr[:200]}")
    assert done.returncode == 0
    assert f"headers: {cache}/headers-1" in done.stdout
    assert "ovirtsdk4/xml." in done.stdout.splitlines()[-1]
