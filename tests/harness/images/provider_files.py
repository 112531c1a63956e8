"""What one cloud adds to an image of several: its files in the layer of the project."""

import dataclasses
import re
import tarfile
import zlib

from lib.lab.images import images


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderFiles:
    """Files of one cloud. size, packed: bytes of all, and compressed one by one."""

    count: int
    size: int
    packed: int


def of(image: images.Image, cloud: str) -> ProviderFiles:
    """Return the files of a cloud in an image, with their bytecode.

    Those of its package, and modules of other packages that have its name.
    """
    (layer,) = (layer for layer in image.layers if layer.name == "project")
    blob = image.layout / "blobs/sha256" / layer.digest.partition(":")[2]
    pattern = re.compile(rf"(^|[/_]){cloud}([/_.]|$)")
    count = size = packed = 0
    with tarfile.open(blob) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None and pattern.search(member.name):
                content = file.read()
                count, size = count + 1, size + len(content)
                packed += len(zlib.compress(content, 6))
    return ProviderFiles(count, size, packed)
