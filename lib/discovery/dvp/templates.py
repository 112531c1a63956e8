"""The templates from which the node manager makes machines, as it finds them.

They are Go templates, kept in templates/; what they make is what capi.py and
checksums.py make. Those of both generations are published: each node controller finds
the files that it knows. Pure but for reading the package's own files.
"""

import importlib.resources
from collections.abc import Sequence

from lib.discovery.dvp import manifests

FILES = (
    "cluster.yaml",
    "instance-class.checksum",
    "machine-template.yaml",
    "template.yaml",
)
"""By base name. The second and third are of the older generation.

Source: deckhouse modules/030-cloud-provider-dvp, capi; modules/040-node-manager,
node-controller, provider templates.
"""


def text(name: str) -> str:
    """Read one template; from a checkout or from inside a zip."""
    folder = importlib.resources.files("lib.discovery.dvp") / "templates" / "capi"
    return (folder / name).read_text()


def secrets() -> Sequence[manifests.Manifest]:
    """Return the Secrets with the templates: of the older and the newer generation."""
    texts = {name: text(name) for name in FILES}
    labels = {
        "cloud-provider.deckhouse.io/ephemeral-nodes-templates": "capi",
        "cloud-provider.deckhouse.io/name": "dvp",
    }
    system = manifests.SYSTEM_NAMESPACE
    return (
        manifests.secret(system, "d8-node-manager-cloud-provider-dvp-capi", texts),
        manifests.secret(system, "d8-cloud-provider-dvp-capi", texts, labels),
    )
