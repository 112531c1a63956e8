"""The charts of the tree, and the snapshots of what helm renders from them.

A snapshot is NAME.yaml in a chart's snapshots/, made from NAME.values.yaml beside it.
Reviewers read it; a test renders it anew and compares.
"""

import dataclasses
import pathlib

from lib.lab import go_modules, helm, places

PLATFORM = "d8-cloud-provider-openstack"
"""The namespace in which Deckhouse runs what knows OpenStack."""
SYSTEM = "kube-system"


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """One set of values of a chart. namespace: into which it is rendered."""

    chart: str
    name: str
    namespace: str

    def values(self, root: pathlib.Path) -> pathlib.Path:
        """Give the file with the values; root: of the checkout."""
        return folder(root, self.chart) / "snapshots" / f"{self.name}.values.yaml"

    def file(self, root: pathlib.Path) -> pathlib.Path:
        """Give the file with what was rendered."""
        return folder(root, self.chart) / "snapshots" / f"{self.name}.yaml"


SNAPSHOTS = (
    Snapshot("cloud-data-discoverer", "proxy", PLATFORM),
    Snapshot("cloud-data-discoverer", "secure-port", PLATFORM),
    Snapshot("csi-controller", "own-secret", SYSTEM),
    Snapshot("csi-controller", "shared-secret", PLATFORM),
    Snapshot("openstack-ccm", "beside-the-reference", PLATFORM),
    Snapshot("openstack-ccm", "usual", SYSTEM),
)


def folder(root: pathlib.Path, chart: str) -> pathlib.Path:
    """Give the folder of a chart; root: of the checkout."""
    return root / "charts" / chart


def render(where: places.Places, root: pathlib.Path, snapshot: Snapshot) -> str:
    """Render a chart with the values of a snapshot.

    Raises:
        LabError: helm is not built, or refuses the chart or its values.
    """
    words = (
        *("template", snapshot.chart, folder(root, snapshot.chart)),
        *("--namespace", snapshot.namespace),
        *("--kube-version", go_modules.KUBERNETES_VERSION),
        *("--values", snapshot.values(root)),
    )
    return helm.run(where, words)


def rewrite(where: places.Places, root: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """Render every snapshot into its file; give the files that have changed.

    Raises:
        LabError: as `render`; the files before it are written by then.
    """
    changed = []
    for snapshot in SNAPSHOTS:
        file, text = snapshot.file(root), render(where, root, snapshot)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            changed.append(file)
    return tuple(changed)
