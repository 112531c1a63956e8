"""A ConfigMap that disables a controller as long as it exists."""

from collections.abc import Callable

from lib.kube import client, objects, resources, store
from lib.process import logs


class DisablingConfigMap:
    """Follows one ConfigMap of the cluster.

    key: "namespace/name". changed: called when it was created or deleted; also at the
    start, if it exists.
    """

    def __init__(self, api: client.Api, key: str, changed: Callable[[], None]) -> None:
        namespace, _, name = key.partition("/")
        self._key = key
        self._changed = changed
        self._log = logs.get(__name__)
        self.store = store.Store(
            api,
            resources.CONFIG_MAPS,
            objects.Bare,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
        )
        self.store.subscribe(self._follow)

    @property
    def exists(self) -> bool:
        """Whether the controller is disabled."""
        return self.store.get(self._key) is not None

    def _follow(
        self, key: str, old: objects.Bare | None, new: objects.Bare | None
    ) -> None:
        if key != self._key or (old is not None and new is not None):
            return
        text = "load balancers are disabled" if new else "load balancers are enabled"
        self._log.info(text, key=key)
        self._changed()
