"""Writes an image of one static program, with no registry and no builder. Pure."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

_INDEX = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def archive(name: str, program: str, content: bytes, architecture: str) -> bytes:
    """Give an archive that `ctr images import` reads.

    name: with a tag ("lab.local/pause:1"). program: its name, which is all there is in
    the image and what it starts. architecture: as Go writes it ("amd64").

    Source: OCI Image Format Specification 1.1, image layout, manifest, configuration.
    """
    layer = _tar({program: content}, mode=0o755)
    config = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            "config": {"Entrypoint": [f"/{program}"]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _INDEX,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, layer)],
        }
    )
    entry = {
        **_descriptor(_INDEX, manifest),
        "platform": {"architecture": architecture, "os": "linux"},
        "annotations": {"io.containerd.image.name": name},
    }
    blobs = {
        f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}": blob
        for blob in (layer, config, manifest)
    }
    layout = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
    }
    return _tar({**layout, **blobs}, mode=0o644)


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
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = mode
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
