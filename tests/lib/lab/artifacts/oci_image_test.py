import gzip
import hashlib
import io
import json
import os
import pathlib
import tarfile

import pytest

from lib.lab.artifacts import oci_image


def read(archive: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for entry in tar:
            content = tar.extractfile(entry)
            files[entry.name] = content.read() if content else b""
    return files


def test_image_holds_one_program_that_it_starts() -> None:
    """Each part is found by the digest its parent names, down to the program."""
    files = read(oci_image.archive("lab.local/pause:1", "pause", b"code", "amd64"))
    for name, content in files.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"

    def blob(digest: str) -> bytes:
        return files[f"blobs/{digest.replace(':', '/')}"]

    entry = json.loads(files["index.json"])["manifests"][0]
    assert entry["annotations"] == {
        "io.containerd.image.name": "lab.local/pause:1",
        "org.opencontainers.image.ref.name": "1",
    }
    manifest = json.loads(blob(entry["digest"]))
    config = json.loads(blob(manifest["config"]["digest"]))
    assert config["config"]["Entrypoint"] == ["/pause"]
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert read(blob(manifest["layers"][0]["digest"])) == {"pause": b"code"}


def fill(root: pathlib.Path, order: tuple[str, ...], umask: int) -> None:
    """Create the same files in another order, under another umask."""
    before = os.umask(umask)
    try:
        for name in order:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)
        (root / "bin/tool").chmod(0o4755 if umask else 0o700)
        (root / "link").symlink_to("bin/tool")
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        os.utime(root / "etc/b", (umask, umask))
    finally:
        os.umask(before)


def test_a_layer_depends_on_names_contents_and_execute_bits_only(
    tmp_path: pathlib.Path,
) -> None:
    names = ("etc/b", "etc/a", "bin/tool")
    first, second = tmp_path / "first", tmp_path / "longer/second"
    for root in (first, second):
        root.mkdir(parents=True)
    fill(first, names, 0o077)
    fill(second, names[::-1], 0)
    for root in (first, second):
        oci_image.write_layer(root, root.with_suffix(".tar"))
    content = first.with_suffix(".tar").read_bytes()
    assert content == second.with_suffix(".tar").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        rows = {entry.name: entry for entry in tar}
    modes = {name: entry.mode for name, entry in rows.items()}
    assert modes == {
        **{"bin": 0o755, "bin/tool": 0o755, "etc": 0o755, "link": 0o777},
        **{"etc/a": 0o644, "etc/b": 0o644, "tmp": 0o1777},
    }
    assert list(rows) == sorted(rows)
    assert {(x.uid, x.gid, x.mtime, x.uname) for x in rows.values()} == {(0, 0, 0, "")}


@pytest.mark.parametrize("created", ["", "2026-01-02T03:04:05Z"])
def test_an_archive_is_a_layout_that_docker_reads(
    tmp_path: pathlib.Path, created: str
) -> None:
    """`docker load` follows manifest.json, others index.json; both name one config."""
    file = tmp_path / "layer.tar.gz"
    file.write_bytes(gzip.compress(b"layer", mtime=0))
    digest = oci_image.file_digest(file)
    size = file.stat().st_size
    layer = oci_image.Layer("base", file, "sha256:0", digest, size, 5)
    manifest = oci_image.Manifest(
        reference="localhost/x:1",
        config={"User": "1"},
        architecture="amd64",
        created=created,
    )
    written = oci_image.write_layout(tmp_path / "oci", manifest, [layer, layer])
    oci_image.write_archive(tmp_path / "oci", tmp_path / "x.tar")
    files = read((tmp_path / "x.tar").read_bytes())
    (saved,) = json.loads(files["manifest.json"])
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] == written
    document = json.loads(files[f"blobs/{written.replace(':', '/')}"])
    assert saved["Config"] == f"blobs/{document['config']['digest'].replace(':', '/')}"
    assert saved["Layers"] == [f"blobs/{digest.replace(':', '/')}"] * 2
    assert saved["RepoTags"] == ["localhost/x:1"]
    config = json.loads(files[saved["Config"]])
    assert config.get("created", "") == created
    assert config["config"] == {"User": "1"}
    assert config["rootfs"]["diff_ids"] == ["sha256:0"] * 2
    assert set(files) == {
        *saved["Layers"],
        saved["Config"],
        "manifest.json",
        "index.json",
        "oci-layout",
        f"blobs/{written.replace(':', '/')}",
    }
