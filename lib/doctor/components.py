"""Components of this project that run in a cluster: one read for each kind."""

import dataclasses
from collections.abc import Collection

import msgspec

from lib.doctor import pods
from lib.kube import client, listing, objects, recommended_labels, resources

LABEL = recommended_labels.NAME
"""Label of each workload of our charts, and of its Pods.

Their label `app` may be that of Deckhouse's objects.
"""


class _Spec(msgspec.Struct, frozen=True):
    template: pods.PodTemplate = pods.PodTemplate()
    replicas: int = 1


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0
    number_ready: int = 0
    desired_number_scheduled: int = 0


class _Workload(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclasses.dataclass(frozen=True, slots=True)
class Component:
    """A Deployment or DaemonSet. ready, desired: numbers of Pods.

    version: the tag of the image; empty without one.
    """

    name: str
    kind: str
    namespace: str
    object_name: str
    image: str
    ready: int
    desired: int

    @property
    def version(self) -> str:
        """The tag of the image; empty for a digest alone."""
        last = self.image.partition("@")[0].rpartition("/")[2]
        return last.partition(":")[2]


def read(
    api: client.Api, names: Collection[str], timeout_s: float
) -> tuple[Component, ...]:
    """Return the components of the cluster: two calls. timeout_s: of each.

    names: values of the label.

    Raises:
        KubeError: they cannot be listed.
    """
    selectors = {"labelSelector": LABEL}
    rows = []
    for kind in (resources.DEPLOYMENTS, resources.DAEMON_SETS):
        listed = listing.read(
            api, kind, _Workload, timeout_s=timeout_s, selectors=selectors
        )
        rows += [
            _component(kind.kind, workload)
            for workload in listed.items
            if workload.metadata.labels[LABEL] in names
        ]
    return tuple(sorted(rows, key=lambda row: (row.name, row.namespace)))


def _is_image_of(image: str, name: str) -> bool:
    last = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return last != "" and (name == last or name.startswith(f"{last}-"))


def _component(kind: str, workload: _Workload) -> Component:
    about, status = workload.metadata, workload.status
    name = about.labels.get(LABEL, "")
    containers = workload.spec.template.spec.containers
    # Sidecars have other images; a cloud may follow the name of a component.
    own = [
        item
        for item in containers
        if item.name == name or _is_image_of(item.image, name)
    ]
    image = (own or [*containers, pods.Container()])[0].image
    is_set = kind == resources.DAEMON_SETS.kind
    ready = status.number_ready if is_set else status.ready_replicas
    desired = status.desired_number_scheduled if is_set else workload.spec.replicas
    return Component(name, kind, about.namespace, about.name, image, ready, desired)
