"""Objects of layouts: what terraform/ creates in a cloud outside of any cluster.

Its cluster's UUID is in a tag, a metadata entry or the description of an object.
"""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Protocol

KEY = "cluster-uuid"
"""Of the tag `cluster-uuid=UUID` and of the metadata entry."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProjectObject:
    """An object of a cloud that a layout may own.

    kind: in the cloud's words. owner: UUID of the cluster in its tag; empty:
    it has none, or its kind cannot have one. created: UTC; None: not reported. fields:
    other values that distinguish objects, by the name of the
    field.
    """

    kind: str
    id: str
    name: str
    owner: str = ""
    created: datetime.datetime | None = None
    fields: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Layouts(Protocol):
    """Objects of layouts in one project. Bounded by time limits of its own."""

    def owned(self, cluster_uuid: str) -> tuple[ProjectObject, ...]:
        """Return the objects with the tag of a cluster, by kind and name.

        Raises:
            CloudError: a list could not be read.
        """
        ...
