"""OpenStack versions and the releases that images exist for."""

from lib.process import config

RELEASES = {"epoxy": "2025.1", "flamingo": "2025.2", "gazpacho": "2026.1"}
"""Release in the tags of images, by the OpenStack version of the spec."""

IMAGE_BASE = "ubuntu_noble"


def image_release(version: str) -> str:
    """Return the tag of the images of an OpenStack version.

    Raises:
        ConfigError: there are no images of it.
    """
    if version not in RELEASES:
        expected = f"a version with images: {', '.join(RELEASES)}"
        problem = config.FieldProblem("spec.openstack_version", version, expected)
        raise config.ConfigError([problem])
    return f"{RELEASES[version]}-{IMAGE_BASE}"


def relocate(reference: str, base_url: str) -> str:
    """Return an image reference with another registry (artifacts.images_base_url)."""
    if not base_url:
        return reference
    registry, _, path = reference.partition("/")
    is_registry = "." in registry or ":" in registry or registry == "localhost"
    return f"{base_url.rstrip('/')}/{path if is_registry else reference}"
