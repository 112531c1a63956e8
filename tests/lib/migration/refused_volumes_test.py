"""Which volumes of the reference csi-node will refuse."""

import dataclasses

import pytest

from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.migration import changeover, reference, refused_volumes
from lib.migration.dvp import dvp_changeover

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
    rows = refused_volumes.read(api, 1.0, DRIVER).items
    assert bool(rows) == is_refused
    for row in rows:
        assert row.subject.startswith("PersistentVolume a")
        assert row.before == "ReadWriteMany with a file system"


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        pytest.param({"csi": {"driver": DRIVER, "fsType": "f2fs"}}, "f2fs", id="f2fs"),
        pytest.param({"csi": {"driver": DRIVER, "fsType": "XFS"}}, "", id="XFS"),
        pytest.param({"csi": {"driver": DRIVER, "fsType": "ext2"}}, "", id="ext2"),
        pytest.param(
            {"csi": {"driver": DRIVER, "fsType": "vfat"}, "volumeMode": "Block"},
            "",
            id="a raw disk, whose file system nothing reads",
        ),
        pytest.param(
            {"csi": None, "cinder": {"volumeID": "v", "fsType": "ntfs"}},
            "ntfs",
            id="of the in-tree driver, which Kubernetes hands to this one",
        ),
    ],
)
def test_file_systems_that_the_driver_does_not_know_are_refused(
    spec: dict[str, object], cause: str
) -> None:
    api = fake_api.FakeApi()
    api.put(resources.PERSISTENT_VOLUMES, volume("a", "ReadWriteOnce", **spec))
    rows = refused_volumes.read(api, 1.0, DRIVER).items
    assert [row.before for row in rows] == [f"fsType {cause}"] * bool(cause)
    for row in rows:
        assert "must be one of ext4" in row.after


def test_an_in_tree_volume_is_one_of_cinder_alone() -> None:
    api = fake_api.FakeApi()
    spec = {"csi": None, "cinder": {"volumeID": "v"}}
    api.put(resources.PERSISTENT_VOLUMES, volume("a", "ReadWriteMany", **spec))
    assert refused_volumes.read(api, 1.0, DRIVER).items
    assert not refused_volumes.read(api, 1.0, dvp_changeover.REFERENCE.driver).items


def storage_class(provisioner: str, **parameters: str) -> dict[str, object]:
    body: dict[str, object] = {"metadata": {"name": "fast"}, "provisioner": provisioner}
    return body | ({"parameters": parameters} if parameters else {})


@pytest.mark.parametrize(
    ("provisioner", "is_own"),
    [(DRIVER, True), ("kubernetes.io/cinder", True), ("nfs.csi.k8s.io", False)],
)
def test_claims_without_a_volume_and_classes_are_refused(
    provisioner: str, is_own: bool
) -> None:
    api = fake_api.FakeApi()
    parameters = {"csi.storage.k8s.io/fstype": "reiserfs"}
    api.put(resources.STORAGE_CLASSES, storage_class(provisioner, **parameters))
    modes = {"accessModes": ["ReadWriteOnce", "ReadWriteMany"]}
    for name, spec in {
        "waits": {},
        "bound": {"volumeName": "a"},
        "raw": {"volumeMode": "Block"},
        "other": {"storageClassName": "slow"},
    }.items():
        body = {"storageClassName": "fast", **modes, **spec}
        metadata = {"name": name, "namespace": "shop"}
        api.put(resources.CLAIMS, {"metadata": metadata, "spec": body})
    read = refused_volumes.read(api, 1.0, DRIVER)
    for row in read.items:
        print(f"{row.subject}: {row.before} -> {row.after}")
    subjects = [row.subject for row in read.items]
    own = ["PersistentVolumeClaim shop/waits", "StorageClass fast"]
    assert subjects == (own if is_own else [])
    assert read.checked == (3 if is_own else 0)


def test_a_class_without_a_file_system_is_not_refused() -> None:
    api = fake_api.FakeApi()
    api.put(resources.STORAGE_CLASSES, storage_class(DRIVER))
    assert refused_volumes.read(api, 1.0, DRIVER).items == ()


@pytest.mark.parametrize("family", [reference.OPENSTACK, dvp_changeover.REFERENCE])
def test_they_are_differences_of_the_migration(family: reference.Family) -> None:
    api = fake_api.FakeApi()
    spec = {"csi": {"driver": family.driver}}
    api.put(resources.PERSISTENT_VOLUMES, volume("a", "ReadWriteMany", **spec))
    observed = reference.read(api, 1.0, dataclasses.replace(family, clusters=None))
    (row,) = observed.refused
    assert row.subject == "PersistentVolume a of claim shop/data"
    program = reference.ReferenceProgram(
        reference.ReplacedBy.CSI_NODE, "DaemonSet", "kube-system", "csi", (), {}
    )
    observed = dataclasses.replace(observed, programs=(program,))
    plans = {
        "cloud-provider-openstack": lambda: changeover.plan(observed, ()),
        "cloud-provider-dvp": lambda: dvp_changeover.plan(observed),
    }
    planned = plans[family.module]()
    assert planned is not None
    assert row in planned.differences
