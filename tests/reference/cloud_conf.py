"""The page of cloud.conf: the settings of OpenStack with the texts beside them."""

import ast
import dataclasses
import functools
import re
import typing
from collections.abc import Iterator, Mapping

from csi_controller import openstack_clouds
from lib.cloud.openstack.config import clouds_yaml, reader, settings
from lib.process import kinds
from lib.process.documented import Documented
from tests.reference import reachable, sheets

ALL = ("openstack-ccm", "csi-controller", "mooring")
VOLUMES = ("csi-controller", "mooring")
MANAGER = ("openstack-ccm", "mooring")
RELOADED = "on reload"
NO_RELOAD = "requires a restart"

SECTIONS: Mapping[str, tuple[type, tuple[str, ...], str]] = {
    "Global": (settings.Credentials, ALL, RELOADED),
    "Networking": (settings.Networking, MANAGER, RELOADED),
    "Route": (settings.Config, MANAGER, RELOADED),
    "Metadata": (settings.Metadata, ALL, RELOADED),
    "LoadBalancer": (settings.LoadBalancer, MANAGER, RELOADED),
    "LoadBalancerClass": (settings.LoadBalancerClass, MANAGER, RELOADED),
    "BlockStorage": (settings.BlockStorage, VOLUMES, RELOADED),
}
"""The class of each section, components that use it, and the effect of a change."""
HEADS = ("key", "type", "default", "meaning", "used by", "change")
NODE_PLUGIN = ("csi-node",)


def tables() -> sheets.Tables:
    """Return a table per section of the file."""
    return {f"[{name}]": sheets.table(HEADS, list(_rows(name))) for name in SECTIONS}


def _rows(section: str) -> Iterator[tuple[str, ...]]:
    _, used_by, change = SECTIONS[section]
    for name, kind, default, text in documented(section):
        users = text.used_by or used_by
        effect = text.change or (NO_RELOAD if users == NODE_PLUGIN else change)
        meaning = text.meaning
        if text.no_effect:
            meaning = f"{meaning} **No effect:** {text.no_effect}."
            users, effect = (), "none"
        yield sheets.code(name), kind, default, meaning, ", ".join(users), effect


def documented(section: str) -> Iterator[tuple[str, str, str, Documented]]:
    """Yield key, type, default and text of each documented key of a section."""
    cls = SECTIONS[section][0]
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        if text := sheets.documented(hints[field.name]):
            kind = typing.get_args(hints[field.name])[0]
            name = text.name or _key(field.name)
            default = text.default or _shown(field.default, field.name)
            yield name, text.kind or _kind(kind, field.name), default, text
    if section == "Global":
        for constant, hint in typing.get_type_hints(
            clouds_yaml, include_extras=True
        ).items():
            if text := sheets.documented(hint):
                value = getattr(clouds_yaml, constant)
                kind = _kind(typing.get_args(hint)[0], constant)
                yield text.name, text.kind or kind, _shown(value, constant), text


def _key(field: str) -> str:
    return field.removesuffix("_s").replace("_", "-")


def _kind(kind: object, field: str) -> str:
    if kind is float and field.endswith("_s"):
        return "duration"
    names: Mapping[object, str] = {
        bool: "boolean",
        int: "integer",
        str: "string",
        tuple[str, ...]: "string, can be repeated",
    }
    return names[kind]


def _shown(default: object, field: str) -> str:
    if isinstance(default, bool):
        return sheets.code(str(default).lower())
    if isinstance(default, float) and field.endswith("_s"):
        return sheets.code(kinds.show_duration(default))
    if isinstance(default, tuple):
        return sheets.code(",".join(map(str, default)))
    return sheets.code(str(default)) if isinstance(default, str | int) else ""


def fields() -> Iterator[tuple[str, str, str]]:
    """Yield section, key and field of each key that is a field of the settings."""
    for section, (cls, *_) in SECTIONS.items():
        hints = typing.get_type_hints(cls, include_extras=True)
        for field in dataclasses.fields(cls):
            if text := sheets.documented(hints[field.name]):
                yield section, text.name or _key(field.name), field.name


CONFIG = "lib/cloud/openstack/config/"
IN_CONFIG = {"attach_limit": "node_volume_attach_limit"}
"""Fields of what a node reads, which have another name in the settings."""


def used_fields() -> frozenset[str]:
    """Return the attributes that the programs read outside of the configuration."""
    attributes = {
        node.attr
        for path, tree in sheets.product().items()
        if not path.startswith(CONFIG)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    }
    return frozenset(attributes | {IN_CONFIG.get(name, name) for name in attributes})


READ_BY: Mapping[str, frozenset[str]] = {"csi-controller": openstack_clouds.SECTIONS}
"""Sections that a program reads, in lower case; others read all."""
EVERY = frozenset(section.lower() for section in SECTIONS)
REACHED_ONLY: Mapping[tuple[str, str], str] = {
    ("availability-zone", "csi-node"): "the zone of a server has this name",
}
"""Keys that code of a component mentions and that have no effect on it, with reason."""


def mentioned(section: str, field: str) -> tuple[str, ...]:
    """Return the programs that read a section and, outside of CONFIG, a field."""
    return tuple(
        program
        for program in (*reachable.PROGRAMS, reachable.TOOL)
        if program in (*ALL, *NODE_PLUGIN)
        and section.lower() in READ_BY.get(program, EVERY)
        and field in _attributes(program)
    )


@functools.cache
def _attributes(program: str) -> frozenset[str]:
    attributes = reachable.attributes(program, without=CONFIG)
    return frozenset(attributes | {IN_CONFIG.get(name, name) for name in attributes})


CANDIDATE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
READERS = (
    "lib/cloud/openstack/config/reader.py",
    "lib/cloud/openstack/config/clouds_yaml.py",
)
AUTH = """[Global]
auth-url = https://keystone.example:5000/v3
application-credential-id = a
application-credential-secret = b
"""


def read_keys(section: str) -> frozenset[str]:
    """Return the keys of a section that the reader knows.

    Each text of its code that may be a key is tried: a file with this key causes no
    warning of an unknown key.
    """
    candidates = {
        text
        for path in READERS
        for text in sheets.texts(ast.walk(sheets.parsed(path)))
        if CANDIDATE.fullmatch(text)
    }
    return frozenset(key for key in candidates if _is_known(section, key))


def _is_known(section: str, key: str) -> bool:
    title = f'[{section} "x"]' if section == "LoadBalancerClass" else f"[{section}]"
    text = AUTH if section == "Global" else f"{AUTH}{title}\n"
    try:
        config = reader.read(f"{text}{key} = 1\n", {})
    except settings.CloudConfError:
        return True  # its value is invalid
    unknown = f"{title} {key}: unknown key"
    return not any(warning.startswith(unknown) for warning in config.warnings)
