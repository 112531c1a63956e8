"""Executes the actions of the nodes flow, one Kubernetes write each."""

import typing
from collections.abc import Callable, Mapping

import msgspec

from lib.kube import client, events, resources, store
from lib.kube import errors as kube_errors
from lib.kube import nodes as kube_nodes
from lib.kube.nodes import Node
from lib.nodes import model
from lib.nodes.model import Action
from lib.process import decoding

WRITE_TIMEOUT_S = 10.0

Json = Mapping[str, object]


class NodeActor:
    """Writes Nodes.

    Addresses have no other writer and are written to the Node of that uid, whatever
    else has changed in it. Every other write carries the resourceVersion of the Node on
    which it is based, as observed or as returned by the previous write of this
    reconciliation: a change by another client in between is a Conflict, and the next
    reconciliation decides again.
    """

    def __init__(
        self,
        api: client.Api,
        nodes: store.Store[Node],
        recorders: Mapping[model.Source, events.Recorder],
        deleted: Callable[[], None] | None = None,
    ) -> None:
        """deleted: called after each Node that was deleted, to count them."""
        self._api = api
        self._nodes = nodes
        self._recorders = recorders
        self._deleted = deleted

    def act(self, node: Node, action: Action) -> Node:
        """Execute one action; return the Node as it is afterwards.

        Raises:
            KubeError: the action was not executed, or its outcome is unknown.
        """
        match action:
            case model.RecordEvent():
                self._record(node, action)
                return node
            case model.HoldNodeBack(message):
                self._record(node, _deletion_blocked(message))
                return node
            case model.DeleteNode():
                self._delete(node)
                return node
            case model.SetAddresses(addresses):
                listed = [{"type": a.type, "address": a.address} for a in addresses]
                body: Json = {
                    "metadata": {"uid": node.metadata.uid},
                    "status": {"addresses": listed},
                }
                return self._patch(node, body, subresource="status")
        body = body_of(node, action)
        metadata = typing.cast(Json, body.get("metadata", {}))
        version = {"resourceVersion": node.metadata.resource_version}
        return self._patch(node, {**body, "metadata": {**metadata, **version}})

    def _patch(self, node: Node, body: Json, subresource: str | None = None) -> Node:
        try:
            answer = self._api.patch(
                resources.NODES,
                node.name,
                msgspec.json.encode(body),
                subresource=subresource,
                content_type=client.MERGE_PATCH,
                timeout_s=WRITE_TIMEOUT_S,
            )
        except kube_errors.KubeError as error:
            if kube_errors.is_denied(error):
                self._record(node, _write_denied(node, error))
            raise
        now = decoding.decode(answer, Node)
        self._nodes.note_write(node.name, now.metadata.resource_version)
        return now

    def _delete(self, node: Node) -> None:
        version = node.metadata.resource_version
        conditions = {"uid": node.metadata.uid, "resourceVersion": version}
        body = {"kind": "DeleteOptions", "apiVersion": "v1"}
        try:
            self._api.delete(
                resources.NODES,
                node.name,
                body=msgspec.json.encode({**body, "preconditions": conditions}),
                timeout_s=WRITE_TIMEOUT_S,
            )
        except kube_errors.NotFound:
            return
        except kube_errors.KubeError as error:
            self._record(node, _delete_failed(node, error))
            raise
        if self._deleted is not None:
            self._deleted()
        self._nodes.note_write(node.name, None)

    def _record(self, node: Node, event: model.RecordEvent) -> None:
        # The reference and the kubelet both use the Node's name as uid here, and
        # `kubectl describe node` looks for it.
        about = events.ObjectRef("Node", node.name, "", node.name, "v1")
        kind: typing.Literal["Warning", "Normal"]
        kind = "Warning" if event.is_warning else "Normal"
        self._recorders[event.source].emit(about, kind, event.reason, event.message)


def body_of(node: Node, action: Action) -> Json:
    """Return the merge patch of an action."""
    match action:
        case model.InitialiseNode(provider_id, labels):
            spec: dict[str, object] = _without(node, kube_nodes.UNINITIALIZED_TAINT)
            if provider_id is not None:
                spec["providerID"] = provider_id
            return {"metadata": {"labels": dict(labels)}, "spec": spec}
        case model.SetLabels(labels):
            return {"metadata": {"labels": dict(labels)}}
        case model.AddShutdownTaint():
            taint = kube_nodes.Taint(kube_nodes.SHUTDOWN_TAINT, "NoSchedule")
            return {"spec": {"taints": [*node.spec.taints, taint]}}
        case model.RemoveShutdownTaint():
            return {"spec": _without(node, kube_nodes.SHUTDOWN_TAINT)}
    raise TypeError(f"no patch for {action!r}")


def _without(node: Node, key: str) -> dict[str, object]:
    return {"taints": [taint for taint in node.spec.taints if taint.key != key]}


def _deletion_blocked(message: str) -> model.RecordEvent:
    return model.RecordEvent(
        model.Source.LIFECYCLE, True, "NodeDeletionBlocked", message
    )


def _write_denied(node: Node, error: kube_errors.KubeError) -> model.RecordEvent:
    return model.RecordEvent(
        model.Source.NODE,
        True,
        "SyncNodeFailed",
        f"Failed writing node {node.name}: {error.message}",
    )


def _delete_failed(node: Node, error: kube_errors.KubeError) -> model.RecordEvent:
    return model.RecordEvent(
        model.Source.LIFECYCLE,
        True,
        "DeletingNodeFailed",
        f"Failed deleting node {node.name}: {error}",
    )
