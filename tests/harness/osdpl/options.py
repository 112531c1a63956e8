"""Judges configuration files by oslo-config-validator of the lab's own OpenStack."""

import dataclasses
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from lib.lab.openstack.install import Install
from tests.harness.osdpl import cloud_manifests
from tests.harness.osdpl.cloud_manifests import CloudManifests

_AGENTS = ("dhcp_agent", "l3_agent", "metadata_agent", "ovn_metadata_agent")
FILES: Mapping[str, tuple[str, str]] = {
    "keystone.conf": ("keystone", "keystone"),
    "glance-api.conf": ("glance", "glance"),
    "placement.conf": ("placement", "placement"),
    "nova.conf": ("nova", "nova"),
    "neutron.conf": ("neutron", "neutron"),
    **{f"{name}.ini": ("neutron", name) for name in _AGENTS},
    "ml2_conf.ini": ("neutron", "plugins.ml2_conf"),
    "openvswitch_agent.ini": ("neutron", "plugins.openvswitch_agent"),
}
"""Program and path below `conf` by configuration file."""
NO_FILES = frozenset(
    {
        *("auto_bridge_add", "ceph", "dynamic_options", "horizon", "hypervisor"),
        *("libvirt", "logging", "overrides", "policy"),
        *("glance_api_uwsgi", "neutron_api_uwsgi", "nova_api_uwsgi"),
        "nova_metadata_uwsgi",
    }
)
"""Keys below `conf` that become no file of oslo.config."""
_SHARED = ("oslo.", "keystonemiddleware.", "osprofiler", "neutron", "nova.auth")
_UNKNOWN = re.compile(r"ERROR:oslo_config\.validator:(\S+) is not part of")
_DEPRECATED = re.compile(r"WARNING:oslo_config\.validator:Deprecated opt (\S+) found")
_LIST = (
    "import importlib.metadata as m, json; "
    "print(json.dumps([e.name for e in m.entry_points(group='oslo.config.opts')]))"
)


_SECTION = re.compile(r"^\[.*\]$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class File:
    """Configuration file of a release."""

    release: str
    name: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Option:
    """Option that a program does not know, or knows by an older name."""

    file: str
    name: str
    is_deprecated: bool
    is_ours: bool


def judge(install: Install, cloud: CloudManifests) -> tuple[int, list[Option]]:
    """Return the number of files that were judged, and the options found.

    All files of a program are judged at once: it knows the options of all of them.
    """
    namespaces = _namespaces(install)
    files = sorted(set(_files(cloud)))
    options: set[Option] = set()
    for program in sorted({FILES[file.name][0] for file in files}):
        of_program = [file for file in files if FILES[file.name][0] == program]
        text = "\n".join(file.text for file in of_program)
        for name, is_deprecated in _reported(install, program, namespaces, text):
            for file in of_program:
                if _has(file, name):
                    values = cloud.values[file.release]
                    is_ours = _is_ours(values, FILES[file.name][1], name)
                    options.add(Option(file.name, name, is_deprecated, is_ours))
    return len(files), sorted(options)


def unjudged(cloud: CloudManifests) -> set[str]:
    """Return keys below `conf` of values that are in no file of the table."""
    known = NO_FILES | {path.partition(".")[0] for _, path in FILES.values()}
    return {
        f"{release} conf.{key}"
        for release, values in cloud.values.items()
        for key in values.get("conf") or {}
        if key not in known
    }


def _files(cloud: CloudManifests) -> Iterator[File]:
    for entry in cloud.of_kind("Secret", "ConfigMap"):
        for key, text in cloud_manifests.texts(entry).items():
            if key in FILES and text.strip():
                yield File(entry.release, key, _SECTION.sub(_lower, text))


def _lower(match: re.Match[str]) -> str:
    """Return the header of a section as samples have it: case does not matter.

    Source: oslo.config, cfg.py, _normalize_group_name.
    """
    return match[0] if match[0] == "[DEFAULT]" else match[0].lower()


def _has(file: File, name: str) -> bool:
    section, _, option = name.rpartition("/")
    parsed = cloud_manifests.ini(file.name, file.text)
    return parsed is not None and parsed.has_option(section, option)


def _namespaces(install: Install) -> list[str]:
    ended = subprocess.run(
        [install.python, "-W", "ignore", "-c", _LIST],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    names: list[str] = json.loads(ended.stdout)
    return names


def _reported(
    install: Install, program: str, namespaces: list[str], text: str
) -> Iterator[tuple[str, bool]]:
    """Return options that a program does not know, or knows by an older name."""
    words = [str(install.program("oslo-config-validator"))]
    for name in namespaces:
        if name.startswith((program, *_SHARED)):
            words += ["--namespace", name]
    ended = subprocess.run(
        [*words, "--input-file", "/dev/stdin"],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr
    for pattern, is_deprecated in ((_UNKNOWN, False), (_DEPRECATED, True)):
        for name in pattern.findall(ended.stderr):
            yield name, is_deprecated


def _is_ours(values: Mapping[str, Any], path: str, name: str) -> bool:
    """Report whether an option is in the values, and not only in the chart."""
    tree: Any = values.get("conf") or {}
    section, _, option = name.rpartition("/")
    for key in (*path.split("."), section, option):
        if not isinstance(tree, Mapping):
            return False
        by_name = {str(name).lower(): name for name in tree}
        if key.lower() not in by_name:
            return False
        tree = tree[by_name[key.lower()]]
    return True
