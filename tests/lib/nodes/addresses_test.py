"""Which addresses a Node shows."""

from collections.abc import Callable

import pytest

from lib.cloud.model import Address, AddressType
from lib.kube import nodes as kube_nodes
from lib.nodes import addresses, model

INTERNAL = Address(AddressType.INTERNAL_IP, "10.0.0.1")
INTERNAL_6 = Address(AddressType.INTERNAL_IP, "fd00::1")
SECOND = Address(AddressType.INTERNAL_IP, "10.1.0.1")
EXTERNAL = Address(AddressType.EXTERNAL_IP, "198.18.0.9")
HOSTNAME = Address(AddressType.HOSTNAME, "cloud-name")
ALL = (INTERNAL, SECOND, INTERNAL_6, EXTERNAL)

MakeNode = Callable[..., kube_nodes.Node]

TABLE = [
    pytest.param(None, ALL, ALL, id="without the annotation all, in cloud order"),
    pytest.param(
        "10.1.0.1",
        ALL,
        (SECOND, EXTERNAL),
        id="the asked one comes first and displaces its type",
    ),
    pytest.param(
        "10.1.0.1,fd00::1",
        ALL,
        (SECOND, INTERNAL_6, EXTERNAL),
        id="two families, in the order asked",
    ),
    pytest.param(
        " fd00::1 , 10.0.0.1",
        ALL,
        (INTERNAL_6, INTERNAL, EXTERNAL),
        id="blanks around are nothing",
    ),
    pytest.param(
        "fd00:0:0::1",
        ALL,
        (INTERNAL_6, EXTERNAL),
        id="addresses are compared as addresses, not as text",
    ),
    pytest.param(
        "198.18.0.9",
        ALL,
        (EXTERNAL, INTERNAL, SECOND, INTERNAL_6),
        id="an external one may be asked for",
    ),
    pytest.param("10.0.0.1", (), (), id="nothing known gives nothing"),
    pytest.param(
        "10.0.0.1",
        (INTERNAL, HOSTNAME),
        (INTERNAL, HOSTNAME),
        id="other types are kept",
    ),
]


@pytest.mark.parametrize(("asked", "cloud", "expected"), TABLE)
def test_provided_node_ip(
    make_node: MakeNode,
    asked: str | None,
    cloud: tuple[Address, ...],
    expected: tuple[Address, ...],
) -> None:
    annotations = {} if asked is None else {model.PROVIDED_IP_ANNOTATION: asked}
    assert addresses.desired(make_node(annotations=annotations), cloud) == expected


@pytest.mark.parametrize("asked", ["", "10.0.0", "10.9.9.9", "10.0.0.1,10.9.9.9"])
def test_a_bad_annotation_names_itself_and_its_value(
    make_node: MakeNode, asked: str
) -> None:
    node = make_node(annotations={model.PROVIDED_IP_ANNOTATION: asked})
    with pytest.raises(addresses.ProvidedIpError) as caught:
        addresses.desired(node, ALL)
    assert model.PROVIDED_IP_ANNOTATION in str(caught.value)


def test_the_clouds_hostname_wins_over_the_kubelets(make_node: MakeNode) -> None:
    node = make_node(addresses=(("Hostname", "kubelet-name"),))
    assert addresses.desired(node, (INTERNAL, HOSTNAME)) == (INTERNAL, HOSTNAME)
    kept = Address(AddressType.HOSTNAME, "kubelet-name")
    assert addresses.desired(node, (INTERNAL,)) == (INTERNAL, kept)
