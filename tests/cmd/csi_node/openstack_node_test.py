"""A node of OpenStack: identity, serials, hints and configuration."""

import dataclasses
import lzma
import pathlib
from collections.abc import Sequence

import pytest

from csi_node import main, openstack_node
from lib.csi import node
from lib.kernel.fake.kernel import FakeKernel
from lib.process import config, flags

ID = "83679162-1378-4288-a2d4-70e13ec132aa"
VOLUME = "11111111-2222-3333-4444-555555555555"
IMAGES = "tests/lib/cloud/openstack/instance_metadata/images"
IMAGE = pathlib.Path(IMAGES, "iso.img.xz")
NOWHERE = "--metadata-address=http://127.0.0.1:9"


@pytest.fixture()
def sys(tmp_path: pathlib.Path) -> pathlib.Path:
    file = tmp_path / "class/dmi/id/product_uuid"
    file.parent.mkdir(parents=True)
    file.write_text(f"{ID}\n")
    (file.parent / "product_name").write_text("OpenStack Nova\n")
    return tmp_path


def values(sys: pathlib.Path, *further: str) -> flags.Values:
    words = ("--endpoint=unix:///csi.sock", f"--sys-root={sys}", *further)
    return flags.parse(main.FLAGS, words)


def conf(folder: pathlib.Path, text: str) -> str:
    file = folder / "cloud.conf"
    file.write_text(text)
    return f"--cloud-config={file}"


def only_drive(folder: pathlib.Path) -> Sequence[str]:
    return (NOWHERE, conf(folder, "[Metadata]\nsearch-order = configDrive\n"))


def test_dmi_serves_only_where_no_zone_is_required(sys: pathlib.Path) -> None:
    parsed = values(sys, *only_drive(sys))
    program = openstack_node.program("n", "1", parsed, FakeKernel())
    assert program.place(False).id == ID
    with pytest.raises(node.IdentityUnknown, match="zone of the node"):
        program.place(True)
    (sys / "class/dmi/id/product_uuid").unlink()
    with pytest.raises(node.IdentityUnknown, match="configDrive: not found"):
        program.place(False)


def test_serials_of_volumes_are_recognised() -> None:
    assert openstack_node.is_volume(VOLUME)
    assert openstack_node.is_volume(VOLUME[:20])
    assert not openstack_node.is_volume("")
    assert not openstack_node.is_volume("QM00001")


def test_the_configuration_is_used_and_its_credentials_are_not(
    sys: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "[Global]\nauth-url = x\npassword = hidden-value\n"
    text += "[BlockStorage]\nnode-volume-attach-limit = 12\n"
    parsed = values(sys, conf(sys, text))
    program = openstack_node.program("n", "1", parsed, FakeKernel())
    assert program.volumes_max == 12
    shown = capsys.readouterr()
    assert "credentials" in shown.out + shown.err
    assert "hidden-value" not in shown.out + shown.err


def test_wrong_configuration_is_named(sys: pathlib.Path) -> None:
    parsed = values(sys, conf(sys, "[BlockStorage]\nnode-volume-attach-limit = x\n"))
    with pytest.raises(config.ConfigError, match="node-volume-attach-limit"):
        openstack_node.program("n", "1", parsed, FakeKernel())


def test_hints_are_links_to_the_place_that_the_config_drive_names(
    sys: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    image = tmp_path / "sr0"
    image.write_bytes(lzma.decompress(IMAGE.read_bytes()))
    kernel = FakeKernel()
    drive = kernel.plug("sr0", "QM00001", image.stat().st_size)
    drive.disk = dataclasses.replace(drive.disk, path=str(image))
    disk = kernel.plug("sdb", "", 2**30)
    disk.links = (("by-path", "pci-0000:00:05.0-scsi-1:0:2:0"),)
    program = openstack_node.program("n", "1", values(sys, NOWHERE), kernel)
    place = program.place(True)
    assert (place.id, place.zone) == (ID, "Zone-A")
    assert [link.number for link in program.hints(VOLUME)] == [disk.disk.number]
    assert program.hints("other") == []


def test_a_volume_with_the_label_of_a_config_drive_is_not_read(
    sys: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    image = tmp_path / "vdb"
    image.write_bytes(lzma.decompress(IMAGE.read_bytes()))
    kernel = FakeKernel()
    volume = kernel.plug("vdb", VOLUME[:20], image.stat().st_size)
    volume.disk = dataclasses.replace(volume.disk, path=str(image))
    parsed = values(sys, *only_drive(sys))
    program = openstack_node.program("n", "1", parsed, kernel)
    with pytest.raises(node.IdentityUnknown, match="zone of the node"):
        program.place(True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "--endpoint: not set: must be unix:///path"),
        (
            ("--endpoint=csi.sock",),
            '--endpoint: invalid value "csi.sock": must be unix:///path',
        ),
        (
            ("--cloud-config=/nonexistent",),
            "--cloud-config: /nonexistent: no such file",
        ),
        (
            ("--dev-root=/nonexistent",),
            '--dev-root: invalid value "/nonexistent": must',
        ),
        (
            ("--kubelet-directory=kubelet",),
            '--kubelet-directory: invalid value "kubelet": must',
        ),
        (
            ("--http-endpoint=8080",),
            '--http-endpoint: invalid value "8080": must be host:port',
        ),
        (("--max-volumes=-1",), '--max-volumes: invalid value "-1": must'),
        (
            ("--cloud=aws",),
            '--cloud: unsupported value "aws": must be one of openstack',
        ),
    ],
)
def test_bad_flags_are_named(words: Sequence[str], expected: str) -> None:
    parsed, problems = flags.sift(main.FLAGS, words)
    texts = [str(problem) for problem in (*problems, *main.judge(parsed))]
    assert any(text.startswith(expected) for text in texts), texts
