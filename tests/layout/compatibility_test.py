"""docs/compatibility.md states the versions that are pinned and used."""

import dataclasses
import pathlib
import re
import tomllib
from collections.abc import Mapping

from lib.cloud.openstack.http import endpoints
from lib.cloud.openstack.load_balancers.read import observe
from lib.lab.artifacts import go_modules

PAGE = pathlib.Path("docs/compatibility.md")
PACKAGES = pathlib.Path("lib/lab/openstack/packages.lock.txt")
FEATURES: Mapping[str, str] = {
    "timeouts": "listener timeouts",
    "tags": "tags; below, the ownership tag is in the description",
    "flavors": "flavors",
    "additive_members": "members added without a list",
    "cidrs": "source ranges",
    "zones": "availability zones",
    "udp_http_monitors": "HTTP monitors of UDP pools",
    "additional_vips": "additional VIPs (dual stack)",
    "http_monitors": "HTTP health monitors",
}
"""Rows of the page by the fields of Features."""
SERVICES = ("Keystone Nova Neutron Cinder Octavia Glance openstack-placement").split()
SIDECARS: Mapping[str, str] = {
    "external-provisioner": "csi-provisioner",
    "external-attacher": "csi",
    "external-resizer": "csi",
    "csi-test": "csi",
    "helm": "helm",
}
"""Repositories, and the modules of the lab that pin them."""
NEWEST = (2, 99)


def dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def versions_of_octavia(feature: str) -> str:
    """Return the first version with a feature; empty: no provider has it."""
    return next(
        (
            dotted((2, minor))
            for minor in range(NEWEST[1])
            if getattr(observe.features((2, minor), "amphora"), feature)
        ),
        "",
    )


def test_features_of_octavia_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    with_ovn = observe.features(NEWEST, "ovn")
    fields = [field.name for field in dataclasses.fields(with_ovn)]
    assert set(fields) == FEATURES.keys()
    for field, shown in FEATURES.items():
        ovn = "yes" if getattr(with_ovn, field) else "no"
        row = f"| {shown} | {versions_of_octavia(field)} | {ovn} |"
        print(row)
        assert row in text


def test_microversions_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    assert f"the highest up to {dotted(endpoints.NEWEST_COMPUTE)}," in text
    assert f"the highest up to {dotted(endpoints.NEWEST_VOLUME)}," in text


def test_pins_of_the_lab() -> None:
    """A version that is raised in the lab is raised on the page."""
    text = PAGE.read_text()
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", PACKAGES.read_text(), re.MULTILINE))
    expected = [
        f"{name.removeprefix('openstack-').capitalize()} {pins[name.lower()]}"
        for name in SERVICES
    ]
    expected += [f"| {go_modules.KUBERNETES_VERSION}; "]
    expected += [f"| {go_modules.REFERENCE_VERSION}: change-over"]
    for repository, module in SIDECARS.items():
        pinned = go_modules.files(module)["go.mod"].decode()
        match = re.search(rf"/{repository}(?:/v\d+)? v(\S+)", pinned)
        assert match, repository
        name = {"csi-test": "csi-sanity", "helm": "helm |"}.get(repository, repository)
        expected.append(f"{name} {match[1]}")
    helm_3 = re.search(r"/helm/v3 v(\S+)", go_modules.files("helm3")["go.mod"].decode())
    assert helm_3
    expected.append(f"; {helm_3[1]} with the chart cloud-provider-openstack |")
    for version in expected:
        print(version)
        assert version in text, version


def test_python_is_that_of_pants() -> None:
    settings = tomllib.loads(pathlib.Path("pants.toml").read_text())
    (constraint,) = settings["python"]["interpreter_constraints"]
    version = constraint.removeprefix("CPython==").removesuffix(".*")
    assert f"| Python | {version}, on Debian |" in PAGE.read_text()
