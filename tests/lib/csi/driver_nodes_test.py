"""The IDs of the Nodes on which a driver runs."""

import pytest

from lib.cloud import errors as cloud_errors
from lib.csi import driver_nodes
from lib.kube import errors, resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls

DRIVER = "cinder.csi.openstack.org"


def csi_node(name: str, **drivers: str) -> dict[str, object]:
    listed = [{"name": key, "nodeID": id_} for key, id_ in drivers.items()]
    return {"metadata": {"name": name}, "spec": {"drivers": listed}}


def test_only_nodes_of_the_driver_have_an_id() -> None:
    api = fake_api.FakeApi()
    for document in (
        csi_node("b", **{DRIVER: "id-b", "nfs.csi.k8s.io": "b"}),
        csi_node("a", **{DRIVER: "id-a"}),
        csi_node("c", **{"nfs.csi.k8s.io": "c"}),
        csi_node("d"),
    ):
        api.put(resources.CSI_NODES, document)
    nodes = driver_nodes.DriverNodes(DRIVER)
    assert nodes.ids() is None
    nodes.use(api)
    assert nodes.ids() == ("id-a", "id-b")


@pytest.mark.parametrize(
    ("error", "is_known"),
    [
        (errors.Forbidden("no right", operation="list"), False),
        (errors.Unavailable("away", operation="list"), True),
    ],
)
def test_what_may_not_be_read_is_not_known_and_what_does_not_answer_is_tried_again(
    error: errors.KubeError, is_known: bool
) -> None:
    api = fake_api.FakeApi()
    nodes = driver_nodes.DriverNodes(DRIVER)
    nodes.use(api)
    api.faults.append(calls.Fault(error, "list", resources.CSI_NODES.plural))
    if not is_known:
        assert nodes.ids() is None
        return
    with pytest.raises(cloud_errors.Unavailable, match="away"):
        nodes.ids()
