"""A server finds out which one it is, from images that Nova's own tools wrote."""

import functools
import http.server
import lzma
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from lib.cloud.openstack.config import reader as config
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.instance_metadata import (
    config_drive,
    document,
    fat,
    server_identity,
    service,
)

IMAGES = pathlib.Path(__file__).with_name("images")
ID = "83679162-1378-4288-a2d4-70e13ec132aa"
SERIAL = "11111111-2222-3333-4444-555555555555"
BODY = b'{"uuid": "%s", "availability_zone": "Zone A"}' % ID.encode()
NAMES = ("iso", "fat12", "fat16", "fat32")
BLOCK = 2**16
Blocks = tuple[int, dict[int, bytes]]
"""Size of an image, and by offset what is not zero: most of an image is."""


def blocks_of(data: bytes) -> Blocks:
    starts = range(0, len(data), BLOCK)
    parts = {start: data[start : start + BLOCK] for start in starts}
    return len(data), {at: x for at, x in parts.items() if x != bytes(len(x))}


@functools.cache
def unpacked(name: str) -> Blocks:
    packed = (IMAGES / f"{name}.img.xz").read_bytes()
    return blocks_of(lzma.decompress(packed))


def write(file: pathlib.Path, blocks: Blocks) -> None:
    size, parts = blocks
    with file.open("wb") as opened:
        opened.truncate(size)
        for at, data in parts.items():
            opened.seek(at)
            opened.write(data)


@pytest.fixture()
def image(tmp_path: pathlib.Path) -> Callable[[str], pathlib.Path]:
    def unpack(name: str) -> pathlib.Path:
        file = tmp_path / f"{name}.img"
        write(file, unpacked(name))
        return file

    return unpack


@pytest.mark.parametrize("name", NAMES)
def test_a_config_drive_is_read_without_mounting_it(
    image: Callable[[str], pathlib.Path], tmp_path: pathlib.Path, name: str
) -> None:
    blank = tmp_path / "blank"
    blank.write_bytes(bytes(2**20))
    devices = [str(tmp_path / "absent"), str(blank), str(image(name))]
    body = config_drive.find(devices)
    assert body is not None
    server = document.parse(body)
    assert (server.id, server.name, server.zone) == (ID, "node-1", "Zone A")
    assert server.disks == (document.Device("scsi", "1:0:2:0", SERIAL),)
    assert config_drive.find(devices[:2]) is None


@pytest.mark.parametrize("name", NAMES)
def test_another_label_is_no_config_drive(
    image: Callable[[str], pathlib.Path], name: str
) -> None:
    file = image(name)
    data = file.read_bytes()
    wide = "config-2".encode("utf-16-be")
    data = data.replace(b"config-2", b"config-3").replace(wide, wide[:-1] + b"3")
    write(file, blocks_of(data.replace(b"CONFIG-2", b"CONFIG-3")))
    assert config_drive.find([str(file)]) is None


def damage(file: pathlib.Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_images_give_an_answer_or_one_error(
    image: Callable[[str], pathlib.Path], name: str
) -> None:
    """Each 16 bytes of the first structures are overwritten, one after the other."""
    file = image(name)
    data = file.read_bytes()
    begin = 32768 if name == "iso" else 0
    results = {"read": 0, "no drive": 0, "error": 0}
    for at in range(begin, begin + 2048, 16):
        damage(file, at, b"\xff" * 16)
        try:
            body = config_drive.find([str(file)])
        except ValueError:
            results["error"] += 1
        else:
            results["no drive" if body is None else "read"] += 1
        damage(file, at, data[at : at + 16])
    print(name, results)
    assert sum(results.values()) == 128
    assert results["read"] > 0


def test_a_chain_of_clusters_that_does_not_end_is_cut(
    image: Callable[[str], pathlib.Path],
) -> None:
    """The file's chain is a loop of its first cluster; so is that of its folder."""
    data = bytearray(image("fat16").read_bytes())
    table = int.from_bytes(data[14:16], "little") * 512
    for number in range(2, 64):
        data[table + 2 * number : table + 2 * number + 2] = number.to_bytes(2, "little")
    reads: list[int] = []

    def read(offset: int, length: int) -> bytes:
        reads.append(length)
        return bytes(data[offset : offset + length])

    disk = fat.FatDisk(read)
    assert disk.file(("openstack", "latest", "absent")) is None
    assert sum(reads) < 64 * 2**20


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "malformed"),
        (b"[]", "malformed"),
        (b'{"uuid": 5}', "malformed"),
        (b"{}", "uuid: not set"),
        (b'{"uuid": ""}', "uuid: not set"),
        (b"\xff\xfe", "malformed"),
    ],
)
def test_documents_that_name_no_server(body: bytes, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        document.parse(body)


class _Service(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[list[tuple[int, bytes]]]
    paths: ClassVar[list[str]]

    def do_GET(self) -> None:  # noqa: N802 -- the base class's name
        self.paths.append(self.path)
        code, body = self.answers.pop(0) if self.answers else (404, b"")
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture()
def metadata_service() -> Iterator[tuple[str, type[_Service]]]:
    class Service(_Service):
        answers: ClassVar[list[tuple[int, bytes]]] = []
        paths: ClassVar[list[str]] = []

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Service
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_metadata_service_is_asked_three_times(
    metadata_service: tuple[str, type[_Service]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, state = metadata_service
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    pauses: list[float] = []
    state.answers[:] = [(500, b""), (404, b""), (200, BODY)]
    assert service.read(address, pauses.append) == BODY
    assert state.paths == ["/openstack/latest/meta_data.json"] * 3
    assert pauses == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"metadata service http://.*: HTTP 404"):
        service.read(address, pauses.append)
    with pytest.raises(ValueError, match="must be http://host"):
        service.read("https://", pauses.append)


def nothing() -> bytes | None:
    return None


def refusing() -> bytes | None:
    raise ValueError("refused")


def test_sources_are_tried_in_order_and_the_first_success_is_kept(
    tmp_path: pathlib.Path,
) -> None:
    calls: list[str] = []

    def answering() -> bytes | None:
        calls.append("read")
        return BODY

    sources = (("configDrive", nothing), ("one", refusing), ("two", answering))
    result = server_identity.ServerIdentity(sources, tmp_path)
    assert result.read().id == ID
    assert result.read().zone == "Zone A"
    assert calls == ["read"]


def dmi(root: pathlib.Path, text: str, **described: str) -> None:
    """Write what firmware reports; described: files beside the UUID."""
    file = root / "class/dmi/id/product_uuid"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    for name, value in (described or {"product_name": "OpenStack Nova"}).items():
        (file.parent / name).write_text(f"{value}\n")


FIRMWARE = {
    "Nova": ({"sys_vendor": "OpenStack Foundation"}, True),
    "Nova of another vendor": (
        {"sys_vendor": "Red Hat", "product_name": "OpenStack Compute"},
        True,
    ),
    "a cloud by its asset tag": (
        {"sys_vendor": "QEMU", "chassis_asset_tag": "OpenTelekomCloud"},
        True,
    ),
    "another cloud by its asset tag": (
        {"product_name": "Standard PC", "chassis_asset_tag": "Samsung Cloud Platform"},
        True,
    ),
    "an asset tag in another letter case": (
        {"product_name": "Standard PC", "chassis_asset_tag": "HuaweiCloud"},
        True,
    ),
    "bare metal, whose owner wrote the asset tag": (
        {
            "sys_vendor": "Dell Inc.",
            "product_name": "PowerEdge R640",
            "chassis_asset_tag": "OpenStack compute 07",
        },
        False,
    ),
    "bare metal of a server line": (
        {"sys_vendor": "Supermicro", "product_family": "OpenStack Ready"},
        False,
    ),
    "a plain virtual machine": (
        {"sys_vendor": "QEMU", "product_name": "Standard PC (Q35 + ICH9, 2009)"},
        False,
    ),
    "another cloud": ({"sys_vendor": "Amazon EC2", "product_name": "m5.large"}, False),
    "bare metal": ({"sys_vendor": "Dell Inc.", "product_name": "PowerEdge"}, False),
    "no description": ({"sys_vendor": ""}, False),
}


@pytest.mark.parametrize("name", FIRMWARE)
def test_the_uuid_of_another_machine_is_no_id_of_a_server(
    name: str, tmp_path: pathlib.Path
) -> None:
    described, is_server = FIRMWARE[name]
    dmi(tmp_path, ID, **described)
    identity = server_identity.ServerIdentity((), tmp_path)
    if is_server:
        assert identity.read().id == ID
        return
    with pytest.raises(server_identity.UnknownIdentity) as caught:
        identity.read()
    assert "not of a server of OpenStack" in str(caught.value)


def test_dmi_gives_an_id_without_a_zone_and_is_not_kept(
    tmp_path: pathlib.Path,
) -> None:
    dmi(tmp_path, f"{ID.upper()}\n")
    answers = [None, BODY]
    result = server_identity.ServerIdentity(
        (("configDrive", lambda: answers.pop(0)),), tmp_path
    )
    first = result.read()
    assert (first.id, first.zone, first.is_complete) == (ID, "", False)
    second = result.read()
    assert (second.zone, second.is_complete) == ("Zone A", True)


@pytest.mark.parametrize(
    "text", ["", "not a uuid", "00000000-0000-0000-0000-000000000000", "F" * 8]
)
def test_an_identity_is_never_guessed(tmp_path: pathlib.Path, text: str) -> None:
    dmi(tmp_path, text)
    sources = (("configDrive", nothing), ("metadataService", refusing))
    with pytest.raises(server_identity.UnknownIdentity) as caught:
        server_identity.ServerIdentity(sources, tmp_path).read()
    message = str(caught.value)
    assert message.startswith("configDrive: not found; metadataService: refused; ")
    assert message.endswith("product_uuid: no UUID")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("", None),
        ("node-volume-attach-limit = 0", None),
        ("node-volume-attach-limit = 20", 20),
        ("node-volume-attach-limit = -1", 256),
        ("node-volume-attach-limit = 300", 256),
    ],
)
def test_a_node_reads_two_sections(text: str, limit: int | None) -> None:
    node_config = config.read_node(
        f"[Global]\npassword = x\n[BlockStorage]\n{text}\n"
        "[Metadata]\nsearch-order = metadataService\n"
    )
    assert node_config == settings.NodeConfig(("metadataService",), limit, True)
    assert config.read_node("").has_credentials is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[BlockStorage]\nnode-volume-attach-limit = many",
            'attach-limit: invalid value "many"',
        ),
        ("[Metadata]\nsearch-order = nowhere", "search-order"),
        ("no section", "line 1: invalid syntax"),
    ],
)
def test_bad_configuration_of_a_node(text: str, expected: str) -> None:
    with pytest.raises(settings.CloudConfError) as caught:
        config.read_node(text)
    assert expected in "\n".join(caught.value.problems)
