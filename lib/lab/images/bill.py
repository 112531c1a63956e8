"""Bill of materials of an image: every package, distribution and Go module.

Source: CycloneDX 1.6, JSON. Pure but for reading the files of the parts.
"""

import base64
import dataclasses
import email.message
import email.parser
import json
import pathlib
import re
import urllib.parse
import uuid
import zipfile
from collections.abc import Iterable, Mapping

from lib.lab import errors
from lib.lab.images.debian_package import DebianPackage

SUFFIX = ".cdx.json"
_FORMAT = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z]+(?:-[0-9.]*[0-9])?)")
_FIELD = re.compile(r"^License: *([A-Za-z0-9][\w.+/ -]{1,60})$", re.MULTILINE)
_MACHINE_READABLE = "Format:"
"""Begin of a copyright file. Source: Debian, machine-readable copyright 1.0."""
_LICENCE_FILE = re.compile(
    r"(licen[cs]e|copying|notice|copyright)[^/]*$", re.IGNORECASE
)
_TEXTS = (
    ("Python Software Foundation License", "PSF-2.0"),
    ("Apache License", "Apache-2.0"),
    ("Mozilla Public License", "MPL-2.0"),
    ("Permission is hereby granted, free of charge", "MIT"),
    ("Permission to use, copy, modify, and", "ISC"),
    ("Neither the name", "BSD-3-Clause"),
    ("Redistribution and use in source", "BSD-2-Clause"),
    ("public domain", "public-domain"),
    ("CC0 1.0 Universal", "CC0-1.0"),
    ("MIT License", "MIT"),
)
"""A sentence of each licence. The first that is in a text decides."""
_SHORT = 60
"""Characters: a longer field of METADATA is the text itself, and no name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A component of an image.

    purl: package URL. sha256: in hexadecimal. licence: SPDX expression or name.
    """

    name: str
    version: str
    purl: str
    sha256: str
    licence: str


def of_package(package: DebianPackage, sha256: str, text: str) -> Part:
    """Return the part of a Debian package. text: of its copyright file.

    Raises:
        LabError: no licence is found in the text.
    """
    names = {*_COMMON.findall(text)}
    if text.lstrip().startswith(_MACHINE_READABLE):
        names |= {name.strip() for name in _FIELD.findall(text)}
    else:
        names.add(_recognized(text))
    licence = " AND ".join(sorted(names - {""}))
    control = package.control
    version = urllib.parse.quote(package.version, safe="")
    name = urllib.parse.quote(package.name, safe="")
    qualifiers = f"arch={control['Architecture']}&distro=debian-12"
    purl = f"pkg:deb/debian/{name}@{version}?{qualifiers}"
    return _part(package.name, package.version, purl, sha256, licence)


def of_wheel(pex: pathlib.Path, wheel: str) -> Part:
    """Return the part of a distribution in a PEX; the hash is that of the PEX.

    Raises:
        LabError: it has no metadata, or no licence.
    """
    with zipfile.ZipFile(pex) as archive:
        hashes = json.loads(archive.read("PEX-INFO"))["distributions"]
        names = [x for x in archive.namelist() if x.startswith(f".deps/{wheel}/")]
        metadata = [x for x in names if x.endswith(".dist-info/METADATA")]
        texts = [
            archive.read(x).decode(errors="replace")
            for x in names
            if ".dist-info/" in x and _LICENCE_FILE.search(x)
        ]
        if not metadata:
            raise errors.LabError(f"{wheel}: no METADATA in {pex.name}")
        content = archive.read(metadata[0]).decode()
    fields = email.parser.HeaderParser().parsestr(content)
    name, version = str(fields["Name"]), str(fields["Version"])
    normal = re.sub(r"[-_.]+", "-", name).lower()
    licence = _declared(fields) or _recognized("\n".join(texts))
    purl = f"pkg:pypi/{normal}@{version}"
    return _part(name, version, purl, hashes[wheel], licence)


def _declared(fields: email.message.Message) -> str:
    """Return the licence that metadata declares. Source: Core metadata 2.4."""
    for key in ("License-Expression", "License"):
        text = str(fields.get(key) or "").strip()
        if text and len(text) <= _SHORT and text.upper() != "UNKNOWN":
            return text
    prefix = "License :: OSI Approved :: "
    declared = [str(text) for text in fields.get_all("Classifier") or ()]
    named = [x.removeprefix(prefix) for x in declared if x.startswith(prefix)]
    return " OR ".join(named)


def of_module(path: str, version: str, go_sum: str, text: str) -> Part:
    """Return the part of a Go module. go_sum: "h1:..." of its files.

    Source: Go Modules Reference, go.sum: SHA-256 of the list of its files.
    """
    digest = base64.b64decode(go_sum.removeprefix("h1:")).hex()
    purl = f"pkg:golang/{path}@{urllib.parse.quote(version, safe='.')}"
    return _part(path, version, purl, digest, _recognized(text))


def modules(build_info: str) -> Mapping[str, tuple[str, str]]:
    """Read version and sum of each module from what `go version -m` prints.

    A replaced module is the one that replaces it.
    """
    rows: dict[str, tuple[str, str]] = {}
    last = ""
    for line in build_info.splitlines():
        words = line.split()
        if words[:1] in (["mod"], ["dep"]) and len(words) == 4:
            last = words[1]
            rows[last] = (words[2], words[3])
        elif words[:1] == ["dep"]:
            last = words[1]
        elif words[:1] == ["=>"]:
            rows.pop(last, None)
            rows[words[1]] = (words[2], words[3])
    return rows


def _recognized(text: str) -> str:
    """Return the name of the licence whose sentence is in a text, empty for none."""
    flat = " ".join(text.split())
    names = (name for sentence, name in _TEXTS if sentence.lower() in flat.lower())
    return next(names, "")


def _part(name: str, version: str, purl: str, sha256: str, licence: str) -> Part:
    if not licence:
        raise errors.LabError(f"{name} {version}: no licence is found in its files")
    return Part(name, version, purl, sha256, licence)


def document(
    title: str, version: str, digest: str, created: str, parts: Iterable[Part]
) -> str:
    """Return the bill of an image as JSON; the same image has the same bill."""
    purl = f"pkg:oci/{title}@{urllib.parse.quote(digest, safe='')}"
    image = {
        "type": "container",
        "bom-ref": purl,
        "name": title,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    rows = [
        {
            "type": "library",
            "bom-ref": part.purl,
            "name": part.name,
            "version": part.version,
            "purl": part.purl,
            "hashes": [{"alg": "SHA-256", "content": part.sha256}],
            "licenses": [{"license": {"name": part.licence}}],
        }
        for part in sorted(parts, key=lambda part: part.purl)
    ]
    metadata = {**({"timestamp": created} if created else {}), "component": image}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, purl)
    bill = {
        **_FORMAT,
        "serialNumber": f"urn:uuid:{serial}",
        "metadata": metadata,
        "components": rows,
    }
    return f"{json.dumps(bill, indent=1)}\n"
