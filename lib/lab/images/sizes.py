"""Sizes of images and their layers, as a table and as limits. Pure."""

from collections.abc import Sequence

from lib.lab.images.images import Image

MB = 1_000_000
LAYERS = ("base", "tools", "distributions", "project")
BASE_LIMIT = 20 * MB
PROJECT_LIMIT = 2 * MB
OWN_LIMITS = {"openstack-ccm": 50 * MB}
"""Bytes of the layers above the base, compressed, by image."""
WHOLE_LIMITS = {"csi-node": 45 * MB}
"""Bytes of all layers, compressed, by image."""


def table(images: Sequence[Image]) -> str:
    """Return a row for each image: compressed MB of its layers, and unpacked MB."""
    head = f"{'image':24}" + "".join(f"{name:>15}" for name in (*LAYERS, "all"))
    rows = [f"{head}{'unpacked':>12}   MB, compressed but for the last column"]
    for image in images:
        by_name = {layer.name: layer.size for layer in image.layers}
        cells = [
            f"{by_name[name] / MB:15.2f}" if name in by_name else f"{'':15}"
            for name in LAYERS
        ]
        unpacked = sum(layer.unpacked for layer in image.layers) / MB
        row = f"{image.name:24}{''.join(cells)}{image.size / MB:15.2f}{unpacked:12.0f}"
        rows.append(row)
    return "\n".join(rows)


def exceeded(image: Image) -> tuple[str, ...]:
    """Return a sentence for each limit that an image exceeds."""
    sizes = {layer.name: layer.size for layer in image.layers}
    limits = (
        ("base", sizes["base"], BASE_LIMIT),
        ("project", sizes["project"], PROJECT_LIMIT),
        ("own layers", image.own_size, OWN_LIMITS.get(image.name)),
        ("whole image", image.size, WHOLE_LIMITS.get(image.name)),
    )
    return tuple(
        f"{image.name}: {part}: {size / MB:.2f} MB: at most {limit / MB:.0f} MB"
        for part, size, limit in limits
        if limit is not None and size > limit
    )
