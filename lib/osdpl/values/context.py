"""What the values of every chart are computed from."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import credentials
from lib.process import config


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Effective spec, namespace and credentials; release: tag of the images.

    endpoints: first label of the public name and name of the port, by endpoint. users:
    prefix of the user names by service.
    """

    namespace: str
    spec: model.Tree = dataclasses.field(repr=False)
    credentials: credentials.Credentials
    release: str
    endpoints: Mapping[str, tuple[str, str]]
    users: Mapping[str, str]

    def get(self, path: str, default: Any = None) -> Any:
        """Return the value at a path of the spec, such as "features.nova"."""
        node: Any = self.spec
        for key in path.split("."):
            if not isinstance(node, dict) or key not in node:
                return default
            node = node[key]
        return node

    def require(self, path: str) -> Any:
        """Return the value at a path of the spec.

        Raises:
            ConfigError: none exists.
        """
        value = self.get(path)
        if value in (None, ""):
            problem = config.not_set(f"spec.{path}")
            raise config.ConfigError([problem])
        return value

    @property
    def region(self) -> str:
        """Return the region of the cloud."""
        return str(self.get("region_name"))

    @property
    def storage_class(self) -> str:
        """Return the StorageClass of volumes that may move between nodes."""
        return str(self.require("persistent_volume_storage_class"))

    @property
    def local_storage_class(self) -> str:
        """Return the StorageClass of databases: local, else the persistent one."""
        local = self.get("local_volume_storage_class")
        return str(local) if local else self.storage_class
