"""Which volumes of the reference csi-node will refuse."""

import pytest

from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.migration import reference, refused_volumes

DRIVER = "cinder.csi.openstack.org"


def volume(name: str, mode: str, **spec: object) -> dict[str, object]:
    claim = {"namespace": "shop", "name": "data"}
    common = {"accessModes": [mode], "csi": {"driver": DRIVER}, "claimRef": claim}
    return {"metadata": {"name": name}, "spec": common | spec}


@pytest.mark.parametrize(
    ("document", "is_refused"),
    [
        pytest.param(volume("a", "ReadWriteMany"), True, id="several writers"),
        pytest.param(
            volume("a", "ReadWriteMany", volumeMode="Filesystem"),
            True,
            id="several writers of a file system that is named",
        ),
        pytest.param(
            volume("a", "ReadWriteMany", volumeMode="Block"), False, id="a raw disk"
        ),
        pytest.param(volume("a", "ReadWriteOnce"), False, id="one writer"),
        pytest.param(volume("a", "ReadOnlyMany"), False, id="several readers"),
        pytest.param(
            volume("a", "ReadWriteMany", csi={"driver": "nfs.csi.k8s.io"}),
            False,
            id="another driver",
        ),
        pytest.param(
            volume("a", "ReadWriteMany", claimRef=None), True, id="without a claim"
        ),
    ],
)
def test_only_file_systems_with_several_writers_are_refused(
    document: dict[str, object], is_refused: bool
) -> None:
    api = fake_api.FakeApi()
    api.put(resources.PERSISTENT_VOLUMES, document)
    rows = refused_volumes.read(api, 1.0, DRIVER)
    assert bool(rows) == is_refused
    for row in rows:
        assert row.subject.startswith("PersistentVolume a")
        assert row.before == "ReadWriteMany with a file system"


def test_they_are_differences_of_the_migration() -> None:
    api = fake_api.FakeApi()
    api.put(resources.PERSISTENT_VOLUMES, volume("a", "ReadWriteMany"))
    observed = reference.read(api, 1.0)
    (row,) = observed.refused
    assert row.subject == "PersistentVolume a of claim shop/data"
