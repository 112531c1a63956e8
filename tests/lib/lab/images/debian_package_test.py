"""Reading of a Debian package."""

import io
import pathlib
import tarfile

import pytest

from lib.lab import errors
from lib.lab.images import debian_package
from lib.lab.images.debian_package import PackageFile

CONTROL = b"Package: a\nVersion: 1:2.0-1\nDescription: one\n more\n"


def tar(*entries: tuple[str, bytes, int] | tuple[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry[0])
            if len(entry) == 2:
                info.type, info.linkname = tarfile.SYMTYPE, entry[1]
                archive.addfile(info)
            else:
                info.size, info.mode = len(entry[1]), entry[2]
                archive.addfile(info, io.BytesIO(entry[1]))
    return out.getvalue()


def ar(**members: bytes) -> bytes:
    content = b"!<arch>\n"
    for name, data in members.items():
        head = f"{name.replace('_', '.'):16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}"
        content += head.encode() + b"`\n" + data + b"\n" * (len(data) % 2)
    return content


def test_control_fields_and_files_are_read(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.deb"
    data = tar(
        ("./bin/tool", b"program", 0o4755),
        ("./lib/x/liba.so.1", "liba.so.1.0"),
        ("./usr/share/doc/a/copyright", b"free", 0o644),
    )
    control = tar(("./control", CONTROL, 0o644))
    file.write_bytes(ar(debian_binary=b"2.0", control_tar_xz=control, data_tar_xz=data))
    package = debian_package.read(file)
    assert (package.name, package.version) == ("a", "1:2.0-1")
    assert package.text == CONTROL.decode()
    assert list(package.files()) == [
        PackageFile("usr/bin/tool", b"program", is_executable=True),
        PackageFile("usr/lib/x/liba.so.1", link="liba.so.1.0"),
        PackageFile("usr/share/doc/a/copyright", b"free"),
    ]


@pytest.mark.parametrize("content", [b"", b"text", ar(debian_binary=b"2.0")])
def test_what_is_no_package_is_rejected(tmp_path: pathlib.Path, content: bytes) -> None:
    file = tmp_path / "a.deb"
    file.write_bytes(content)
    with pytest.raises(errors.LabError, match="a.deb: not a Debian package"):
        debian_package.read(file)
