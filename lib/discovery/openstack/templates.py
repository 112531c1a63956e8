"""The templates from which the node manager makes machines, as it finds them.

They are Go templates, kept in templates/; what they make is what machine_class.py,
checksums.py and capi.py make. Pure but for reading the package's own files.
"""

import importlib.resources
from collections.abc import Mapping

from lib.discovery.openstack import manifests

ENGINES: Mapping[str, tuple[str, ...]] = {
    "mcm": (
        "config-for-machine-controller-manager.yaml",
        "machine-class.checksum",
        "machine-class.yaml",
    ),
    "capi": ("cluster.yaml", "credentials.yaml", "template.yaml"),
}
"""By engine, the files its Secret holds, by base name.

Source: Deckhouse, node-manager, node-controller, provider templates.
"""


def text(engine: str, name: str) -> str:
    """Read one template; from a checkout or from inside a zip."""
    folder = importlib.resources.files("lib.discovery.openstack") / "templates"
    return (folder / engine / name).read_text()


def secret(engine: str) -> manifests.Manifest:
    """Return the Secret with the templates of an engine: mcm or capi."""
    return manifests.secret(
        manifests.SYSTEM_NAMESPACE,
        f"d8-cloud-provider-openstack-{engine}",
        {name: text(engine, name) for name in ENGINES[engine]},
        {
            "cloud-provider.deckhouse.io/ephemeral-nodes-templates": engine,
            "cloud-provider.deckhouse.io/name": "openstack",
        },
    )
