"""A spec of any depth and length: refused with its path, and always deletable."""

import json
import pathlib
import time
from typing import Any

import pytest

from lib.kube import resources
from lib.osdpl.api import limits, spec
from lib.osdpl.webhook import admission
from tests.lib.osdpl import ground, samples
from tests.lib.osdpl.ground import Cluster, Process


def nested(depth: int, is_list: bool = False) -> Any:
    tree: Any = "end"
    for _ in range(depth):
        tree = [tree] if is_list else {"a": tree}
    return tree


def values(value: Any) -> dict[str, Any]:
    return {"services": {"identity": {"keystone": {"values": {"deep": value}}}}}


LARGE = {
    "500 objects": (nested(500), "objects and lists within each other"),
    "5000 lists": (nested(5000, is_list=True), "objects and lists within each other"),
    "10001 items": ([*range(10_001)], "at most 10000 items"),
    "10001 fields": (dict.fromkeys(map(str, range(10_001))), "at most 10000 items"),
}


@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_is_refused_with_its_path(case: str) -> None:
    value, expected = LARGE[case]
    (problem,) = spec.problems({**samples.DOCUMENT["spec"], **values(value)})
    print(str(problem)[:200])
    assert problem.field.startswith("spec.services.identity.keystone.values.deep")
    assert expected in str(problem)


def test_what_is_within_the_limits_is_accepted_in_seconds() -> None:
    began = time.monotonic()
    lists = {str(number): [*range(10_000)] for number in range(10)}
    tree = {"lists": lists, "deep": nested(limits.DEPTH_MAX - 8)}
    rendered = samples.rendered(**values(tree))
    assert rendered.refusals == ()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("case", LARGE)
def test_it_can_be_deleted_nevertheless(tmp_path: pathlib.Path, case: str) -> None:
    cluster = Cluster(tmp_path)
    cluster.create()
    Process(cluster).settle()
    cluster.change(
        **values(LARGE[case][0]) if "500" not in case else values(nested(300))
    )
    Process(cluster).settle()
    assert cluster.condition("Accepted")["reason"] == "InvalidSpec"
    cluster.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", ground.NAMESPACE)
    Process(cluster).settle()
    assert cluster.deployed() == frozenset()


def test_the_webhook_answers_for_any_depth() -> None:
    text = json.dumps(nested(300))
    deep = text.replace('"end"', "[" * 20_000 + "]" * 20_000)
    review = (
        '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request":'
        f' {{"uid": "u", "operation": "CREATE", "object": {{"spec": {deep}}}}}}}'
    )
    with pytest.raises(ValueError, match="AdmissionReview"):
        admission.parse(review.encode())
