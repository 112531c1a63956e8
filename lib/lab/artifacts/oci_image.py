"""Writes an image of one layer, with no registry and no builder."""

import hashlib
import io
import json
import pathlib
import tarfile
from collections.abc import Mapping

_INDEX = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def archive(name: str, program: str, content: bytes, architecture: str) -> bytes:
    """Return an archive that `ctr images import` reads.

    name: with a tag ("lab.local/pause:1"). program: its name, which is all there is in
    the image and what it starts. architecture: as Go writes it ("amd64").

    Source: OCI Image Format Specification 1.1, image layout, manifest, configuration.
    """
    layer = _tar({program: content}, mode=0o755)
    descriptor = _descriptor(_LAYER, layer)
    config = {"Entrypoint": [f"/{program}"]}
    blobs = _documents(name, descriptor, config, architecture)
    return _tar({**blobs, _path(layer): layer}, mode=0o644)


def write(
    file: pathlib.Path,
    name: str,
    layer: pathlib.Path,
    config: Mapping[str, object],
    architecture: str,
) -> None:
    """Write an archive of one layer, as `archive` does. layer: of `write_layer`.

    config: user, entry point and environment, as the specification names them.
    """
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    size = layer.stat().st_size
    descriptor = {"mediaType": _LAYER, "digest": f"sha256:{digest}", "size": size}
    blobs = _documents(name, descriptor, config, architecture)
    with tarfile.open(file, "w") as tar, layer.open("rb") as content:
        for path, blob in blobs.items():
            tar.addfile(_entry(path, len(blob), 0o644), io.BytesIO(blob))
        tar.addfile(_entry(f"blobs/sha256/{digest}", size, 0o644), content)


def write_layer(root: pathlib.Path, file: pathlib.Path) -> None:
    """Write a folder as a layer: files of root, without times, in their order."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(file, "w") as tar:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            tar.add(path, name, recursive=False, filter=plain)


def _documents(
    name: str,
    layer: Mapping[str, object],
    config: Mapping[str, object],
    architecture: str,
) -> dict[str, bytes]:
    """Return all but the layer: the index, the manifest and the configuration."""
    described = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
            "config": config,
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _INDEX,
            "config": _descriptor(_CONFIG, described),
            "layers": [layer],
        }
    )
    entry = {
        **_descriptor(_INDEX, manifest),
        "platform": {"architecture": architecture, "os": "linux"},
        "annotations": {"io.containerd.image.name": name},
    }
    return {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
        **{_path(blob): blob for blob in (described, manifest)},
    }


def _path(blob: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _tar(files: Mapping[str, bytes], mode: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            tar.addfile(_entry(name, len(content), mode), io.BytesIO(content))
    return out.getvalue()


def _entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = mode
    return entry
