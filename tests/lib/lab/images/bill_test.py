"""Bill of materials: what is read of packages, distributions and Go modules."""

import json
import pathlib
import zipfile

import pytest

from lib.lab import errors
from lib.lab.images import bill
from lib.lab.images.debian_package import DebianPackage

CONTROL = {"Package": "a", "Version": "1:2+b1", "Architecture": "amd64"}
PACKAGE = DebianPackage(CONTROL, "", pathlib.Path("a.deb"))
MACHINE = "Format: x\nFiles: *\nLicense: GPL-2+\nFiles: b\nLicense: MIT\n"
BUILD_INFO = """helm: go1.26.8
\tpath\thelm.sh/helm/v4/cmd/helm
\tmod\thelm.sh/helm/v4\tv4.3.1\th1:AAAA
\tdep\texample.com/a\tv1.0.0\th1:AQID
\tdep\texample.com/b\tv1.0.0
\t=>\texample.com/fork\tv2.0.0\th1:BAUG
\tbuild\t-trimpath=true
"""


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (MACHINE, "GPL-2+ AND MIT"),
        ("see /usr/share/common-licenses/GPL-2.", "GPL-2"),
        ("see /usr/share/common-licenses/GPL", "GPL"),
        ("This is in the public domain.", "public-domain"),
        ("PYTHON SOFTWARE FOUNDATION LICENSE", "PSF-2.0"),
    ],
)
def test_licence_of_a_debian_package(text: str, licence: str) -> None:
    part = bill.of_package(PACKAGE, "ff", text)
    purl = "pkg:deb/debian/a@1%3A2%2Bb1?arch=amd64&distro=debian-12"
    assert part == bill.Part("a", "1:2+b1", purl, "ff", licence)


def test_a_part_without_a_licence_is_rejected() -> None:
    with pytest.raises(errors.LabError, match="a 1:2.b1: no licence is found"):
        bill.of_package(PACKAGE, "ff", "All rights reserved.")


@pytest.mark.parametrize(
    ("fields", "text", "licence"),
    [
        ("License-Expression: MIT AND Apache-2.0", "", "MIT AND Apache-2.0"),
        ("License: BSD", "", "BSD"),
        (f"License: {'x' * 99}", "Apache License Version 2.0", "Apache-2.0"),
        ("Classifier: License :: OSI Approved :: MIT License", "", "MIT License"),
        ("", "Redistribution and use in\n source forms", "BSD-2-Clause"),
    ],
)
def test_licence_of_a_distribution(
    tmp_path: pathlib.Path, fields: str, text: str, licence: str
) -> None:
    pex, wheel = tmp_path / "p.pex", "A_b-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pex, "w") as archive:
        archive.writestr("PEX-INFO", json.dumps({"distributions": {wheel: "ff"}}))
        head = f".deps/{wheel}/A_b-1.0.dist-info"
        archive.writestr(f"{head}/METADATA", f"Name: A_b\nVersion: 1.0\n{fields}\n")
        archive.writestr(f"{head}/licenses/LICENSE", text)
    part = bill.of_wheel(pex, wheel)
    assert part == bill.Part("A_b", "1.0", "pkg:pypi/a-b@1.0", "ff", licence)


def test_modules_of_a_go_program() -> None:
    modules = bill.modules(BUILD_INFO)
    assert modules == {
        "helm.sh/helm/v4": ("v4.3.1", "h1:AAAA"),
        "example.com/a": ("v1.0.0", "h1:AQID"),
        "example.com/fork": ("v2.0.0", "h1:BAUG"),
    }
    part = bill.of_module("example.com/a", "v1.0.0", "h1:AQID", "MIT License")
    assert (part.sha256, part.licence) == ("010203", "MIT")


def test_the_same_image_has_the_same_bill() -> None:
    parts = [bill.of_package(PACKAGE, "ff", MACHINE)]
    rows = [bill.document("x", "1", "sha256:ab", "", parts) for _ in range(2)]
    assert rows[0] == rows[1]
    other = json.loads(bill.document("x", "1", "sha256:cd", "2026", parts))
    assert other["serialNumber"] != json.loads(rows[0])["serialNumber"]
    assert other["metadata"]["timestamp"] == "2026"
    assert [row["name"] for row in other["components"]] == ["a"]
