import hashlib
import io
import json
import tarfile

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
    assert entry["annotations"] == {"io.containerd.image.name": "lab.local/pause:1"}
    manifest = json.loads(blob(entry["digest"]))
    config = json.loads(blob(manifest["config"]["digest"]))
    assert config["config"]["Entrypoint"] == ["/pause"]
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert read(blob(manifest["layers"][0]["digest"])) == {"pause": b"code"}
