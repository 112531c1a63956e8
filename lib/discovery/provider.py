"""Settings of a cloud for the objects that are published for it."""

import dataclasses
from collections.abc import Callable


def _no_problems(document: object) -> tuple[str, ...]:
    del document
    return ()


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """Differences of a cloud's objects from those of other clouds.

    provisioner: of its StorageClasses. type_parameter: their parameter with the name
    of the storage type. parameters: further ones, the same in every class.
    access_deployment: namespace/name, the default of --access-deployment. problems:
    of its discovery document, as JSON decodes it. lasting: keys of the document with
    lists that may be empty, but never become empty while the cluster exists.
    """

    provisioner: str = ""
    type_parameter: str = "type"
    parameters: tuple[tuple[str, str], ...] = ()
    access_deployment: str = ""
    problems: Callable[[object], tuple[str, ...]] = _no_problems
    lasting: tuple[str, ...] = ()

    def class_parameters(self, storage_type: str) -> dict[str, str]:
        """Return the parameters of the StorageClass of a storage type."""
        return {self.type_parameter: storage_type, **dict(self.parameters)}
