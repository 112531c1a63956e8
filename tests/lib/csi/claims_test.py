"""Annotations of claims are read one by one; what can't be read is UNAVAILABLE."""

import pytest

from lib.csi import claims
from lib.kube import resources
from lib.kube.fake import api
from lib.volumes.refusals import Code, Refused


def _claim(name: str, **metadata: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "web", **metadata},
    }


def test_annotations_are_given_and_may_be_missing() -> None:
    fake = api.FakeApi()
    fake.put(resources.CLAIMS, _claim("data", annotations={"a": "b"}))
    fake.put(resources.CLAIMS, _claim("plain"))
    one = claims.Claims(fake)
    assert one.annotations("web", "data") == {"a": "b"}
    assert one.annotations("web", "plain") == {}


def test_a_claim_that_is_not_there_is_told() -> None:
    with pytest.raises(Refused, match="PersistentVolumeClaim web/data") as raised:
        claims.Claims(api.FakeApi()).annotations("web", "data")
    assert raised.value.code is Code.UNAVAILABLE
