"""A parent that refuses, for CSI: the code and its message, and few requests.

Prints case, call, code and message.
"""

import dataclasses
from collections.abc import Mapping

import pytest

from lib.cloud.volumes import VolumeId, VolumeSpec
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from lib.volumes import model
from lib.volumes.csi_codes import Code, RefusedCall
from tests.lib.cloud.dvp.volumes import disks
from tests.lib.cloud.dvp.volumes.disks import NODE

GIB = 2**30
ID = VolumeId("pvc-0f0e0d0c-0000-4000-8000-000000000001")
MAKE = model.Make(VolumeSpec(ID, GIB, disks.UUID, type=disks.CLASS))
PUBLISH = model.PublishVolume(ID, NODE)
PATIENCE_S = 3.0
MOST_REQUESTS = 12
"""Within PATIENCE_S: lists of three kinds, each tried again after a pause."""


@dataclasses.dataclass(frozen=True)
class Case:
    """What the parent answers to each call of a verb, and the result of a request."""

    fault: kube_errors.KubeError
    verb: str
    request: model.Request
    code: Code
    message: str


def refusal(
    kind: type[kube_errors.KubeError], status: int, text: str, about: str = ""
) -> kube_errors.KubeError:
    return kind(text, operation="x", status=status, about=about)


DISKS = disks.DISKS.plural
FORBIDDEN = f'{DISKS} is forbidden: User "u" cannot list resource'
CASES: Mapping[str, Case] = {
    "expired token": Case(
        refusal(kube_errors.Unauthorized, 401, "Unauthorized"),
        "list",
        PUBLISH,
        Code.UNAUTHENTICATED,
        "Unauthorized",
    ),
    "kubeconfig of another project": Case(
        refusal(kube_errors.Forbidden, 403, FORBIDDEN),
        "list",
        PUBLISH,
        Code.PERMISSION_DENIED,
        FORBIDDEN,
    ),
    "API group missing": Case(
        refusal(kube_errors.NotFound, 404, "404 page not found"),
        "list",
        PUBLISH,
        Code.UNAVAILABLE,
        f"the parent does not serve {DISKS}: 404 page not found",
    ),
    "namespace missing": Case(
        refusal(
            kube_errors.NotFound,
            404,
            'namespaces "project-a" not found',
            "namespaces/project-a",
        ),
        "create",
        MAKE,
        Code.UNAVAILABLE,
        'missing in the parent: namespaces "project-a" not found',
    ),
    "quota of the project": Case(
        refusal(
            kube_errors.Forbidden,
            403,
            f"{DISKS} is forbidden: exceeded quota: q, requested: 1, limited: 0",
        ),
        "create",
        MAKE,
        Code.RESOURCE_EXHAUSTED,
        "exceeded quota: q, requested: 1, limited: 0",
    ),
    "refused by admission": Case(
        refusal(kube_errors.Forbidden, 403, "policy p denied request: name too long"),
        "create",
        MAKE,
        Code.INVALID_ARGUMENT,
        "denied request: name too long",
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_each_case_is_one_code_and_no_hot_loop(title: str) -> None:
    case = CASES[title]
    world = disks.ParentInMemory()
    world.api.faults += [calls.Fault(case.fault, case.verb) for _ in range(200)]
    with disks.opened(world) as volumes:
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, case.request, PATIENCE_S)
        sent = [call.verb for call in world.api.calls if call.verb != "watch"]
    code, message = refused.value.code, refused.value.message
    print(f"{title:30} {code.value:20} {len(sent):2} requests: {message}")
    assert code is case.code
    assert case.message in message
    assert len(sent) <= MOST_REQUESTS
