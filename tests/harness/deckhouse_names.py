"""Permissions of a chart, as they are with Deckhouse's names."""

import copy
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class DeckhouseNames:
    """component: of this project. account: its ServiceAccount with Deckhouse's names.

    role: first part of the names of its ClusterRoles.
    """

    component: str
    account: str
    role: str

    def renamed(self, document: Any) -> Any:
        """Return an object of the component's own manifest with Deckhouse's names."""
        result = copy.deepcopy(document)
        for kind, named in (
            (result["kind"], result["metadata"]),
            (result.get("roleRef", {}).get("kind", ""), result.get("roleRef")),
        ):
            if kind.startswith("Cluster"):
                named["name"] = self.of_role(named["name"])
        for subject in result.get("subjects", ()):
            if subject["name"] == self.component:
                subject["name"] = self.account
        if result["kind"] == "ServiceAccount":
            result["metadata"]["name"] = self.account
        return result

    def of_role(self, name: str) -> str:
        """Return the name of a ClusterRole."""
        return name.replace(self.component, self.role, 1)


CSI = DeckhouseNames(
    "csi-controller", "csi", "d8:cloud-provider-openstack:csi:controller"
)


def without_labels(document: Any) -> Any:
    """Return an object without its labels."""
    about = dict(document["metadata"])
    about.pop("labels", None)
    return {**document, "metadata": about}
