"""Writes images as OCI layouts and archives, with no registry and no builder.

An archive is an OCI layout that `docker load` reads as well. Owners, order, times and
modes are fixed: the same files become the same bytes.
"""

import dataclasses
import hashlib
import io
import json
import pathlib
import stat
import tarfile
from collections.abc import Mapping, Sequence

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_GZIP = f"{_LAYER}+gzip"
_NAME = "io.containerd.image.name"
_TAG = "org.opencontainers.image.ref.name"


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    """A layer. name: for people. file: compressed. sizes in bytes.

    diff_id: digest before compression; digest: of the file.
    """

    name: str
    file: pathlib.Path
    diff_id: str
    digest: str
    size: int
    unpacked: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """How an image is named, run and described.

    reference: with a tag. config: user, entry point, environment and labels, as the
    specification names them. created: RFC 3339, empty when not known.
    """

    reference: str
    config: Mapping[str, object]
    architecture: str
    created: str = ""


def archive(name: str, program: str, content: bytes, architecture: str) -> bytes:
    """Return an archive that `ctr images import` reads.

    name: with a tag ("lab.local/pause:1"). program: its name, which is all there is in
    the image and what it starts. architecture: as Go writes it ("amd64").

    Source: OCI Image Format Specification 1.1, image layout, manifest, configuration.
    """
    layer = _tar({program: content}, mode=0o755)
    described = Manifest(
        reference=name,
        config={"Entrypoint": [f"/{program}"]},
        architecture=architecture,
    )
    layers = [(_descriptor(_LAYER, layer), _digest(layer))]
    blobs, _ = _documents(described, layers)
    return _tar({**blobs, _path(_digest(layer)): layer}, mode=0o644)


def write_layout(
    folder: pathlib.Path, manifest: Manifest, layers: Sequence[Layer]
) -> str:
    """Fill an empty folder with an OCI layout; return the digest of its manifest.

    The files of the layers are moved into it, or linked where they are shared.
    """
    rows = [
        (
            {"mediaType": _GZIP, "digest": layer.digest, "size": layer.size},
            layer.diff_id,
        )
        for layer in layers
    ]
    blobs, digest = _documents(manifest, rows)
    (folder / "blobs/sha256").mkdir(parents=True)
    for path, blob in blobs.items():
        (folder / path).write_bytes(blob)
    for layer in layers:
        target = folder / _path(layer.digest)
        if not target.exists():
            target.hardlink_to(layer.file)
    return digest


def write_archive(layout: pathlib.Path, file: pathlib.Path) -> None:
    """Write a layout as one archive."""
    with tarfile.open(file, "w") as tar:
        for path in sorted(path for path in layout.rglob("*") if path.is_file()):
            name = str(path.relative_to(layout))
            with path.open("rb") as content:
                tar.addfile(_entry(name, path.stat().st_size, 0o644), content)


def write_layer(root: pathlib.Path, file: pathlib.Path) -> None:
    """Write a folder as a layer: files of root, without times, in their order.

    Of the modes only the execute and the sticky bit are kept, so that the umask of the
    building process has no effect.
    """

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = _mode(entry)
        return entry

    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            tar.add(path, name, recursive=False, filter=plain)


def _mode(entry: tarfile.TarInfo) -> int:
    if entry.issym():
        return 0o777
    if entry.isdir():
        return 0o1777 if entry.mode & stat.S_ISVTX else 0o755
    return 0o755 if entry.mode & stat.S_IXUSR else 0o644


def file_digest(file: pathlib.Path) -> str:
    """Return the digest of a file, as the specification writes it."""
    with file.open("rb") as content:
        return f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"


def _documents(
    manifest: Manifest, layers: Sequence[tuple[Mapping[str, object], str]]
) -> tuple[dict[str, bytes], str]:
    """Return all but the layers, by path, and the digest of the manifest.

    layers: descriptor and diff_id. manifest.json is that of `docker save`.
    """
    platform = {"architecture": manifest.architecture, "os": "linux"}
    created = {"created": manifest.created} if manifest.created else {}
    config = _json(
        {
            **created,
            **platform,
            "config": manifest.config,
            "rootfs": {"type": "layers", "diff_ids": [row[1] for row in layers]},
            "history": [{**created, "created_by": "mooring lab image"} for _ in layers],
        }
    )
    written = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [row[0] for row in layers],
        }
    )
    tag = manifest.reference.rpartition(":")[2]
    entry = {
        **_descriptor(_MANIFEST, written),
        "platform": platform,
        "annotations": {_NAME: manifest.reference, _TAG: tag},
    }
    saved = {
        "Config": _path(_digest(config)),
        "RepoTags": [manifest.reference],
        "Layers": [_path(str(row[0]["digest"])) for row in layers],
    }
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}
    documents = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        "manifest.json": _json([saved]),
        **{_path(_digest(blob)): blob for blob in (config, written)},
    }
    return documents, _digest(written)


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


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
