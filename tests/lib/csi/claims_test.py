"""Annotations of claims are read one by one; what can't be read is UNAVAILABLE."""

import uuid

import pytest

from lib.csi import claims
from lib.kube import resources
from lib.kube.fake import api
from lib.volumes.csi_codes import Code, RefusedCall


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
    reader = claims.Claims(fake)
    assert reader.annotations("web", "data", "pvc-1") == {"a": "b"}
    assert reader.annotations("web", "plain", "pvc-1") == {}


@pytest.mark.parametrize(
    ("volume_name", "is_its_own"),
    [
        ("pvc-{uid}", True),
        ("mine-{uid}", True),
        ("named-otherwise", True),
        (f"pvc-{uuid.uuid4()}", False),
    ],
)
def test_only_the_claim_itself_lends_its_annotations(
    volume_name: str, is_its_own: bool
) -> None:
    """A new claim of the same name is another one."""
    fake = api.FakeApi()
    claim = fake.put(resources.CLAIMS, _claim("data", annotations={"a": "b"}))
    metadata = claim["metadata"]
    assert isinstance(metadata, dict)
    name = volume_name.format(uid=metadata["uid"])
    annotations = claims.Claims(fake).annotations("web", "data", name)
    assert annotations == ({"a": "b"} if is_its_own else {})


def test_a_claim_that_was_deleted_has_no_annotations() -> None:
    """Otherwise the creation of its volume never ends, and the volume leaks."""
    assert claims.Claims(api.FakeApi()).annotations("web", "data", "pvc-1") == {}


def test_a_claim_that_cannot_be_read_is_unavailable() -> None:
    fake = api.FakeApi()
    fake.put(resources.CLAIMS, _claim("data", annotations={"a": 1}))
    with pytest.raises(RefusedCall, match="PersistentVolumeClaim web/data") as raised:
        claims.Claims(fake).annotations("web", "data", "pvc-1")
    assert raised.value.code is Code.UNAVAILABLE
