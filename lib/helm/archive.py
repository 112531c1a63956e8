"""Archives of charts: what is in them, without unpacking them to a disk."""

import io
import tarfile
import zlib

MEMBER_MAX = 1024 * 1024


def member(archive: bytes, name: str) -> bytes | None:
    """Return a file of the chart's top folder; None if there is none of that name."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            for entry in tar:
                parts = entry.name.removeprefix("./").split("/")
                if len(parts) == 2 and parts[1] == name and entry.isfile():
                    file = tar.extractfile(entry)
                    return file.read(MEMBER_MAX) if file is not None else None
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        return None
    return None


def names(archive: bytes) -> tuple[str, ...]:
    """Return the names of all members; empty when it is no archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            return tuple(tar.getnames())
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        return ()
