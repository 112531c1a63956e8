"""Tables of what users request in the cluster: annotations and parameters."""

import ast
from collections.abc import Iterator, Mapping

from lib.cloud.openstack.load_balancers.spec import annotations
from lib.cloud.openstack.volumes import parameters
from lib.csi import formatting
from lib.node_volumes import mkfs_options
from tests.reference import sheets

HEADS = ("annotation", "type", "default", "meaning", "invalid or changed")
DEFAULT_EFFECT = "invalid: default and Event"
PARAMETERS = ("parameter", "type", "default", "meaning", "used by")
GROUPS: Mapping[str, str] = {
    "Choice of the load balancer": (
        "CLASS INTERNAL LOAD_BALANCER_ID DECKHOUSE_ID FLAVOR_ID AVAILABILITY_ZONE"
    ),
    "Address and networks": (
        "DECKHOUSE_ADDRESS NETWORK_ID SUBNET_ID PORT_ID FLOATING_NETWORK_ID"
        " FLOATING_SUBNET_ID FLOATING_SUBNET FLOATING_SUBNET_TAGS KEEP_FLOATING_IP"
        " HOSTNAME"
    ),
    "Members": ("MEMBER_SUBNET_ID MEMBER_CIDR NODE_SELECTOR METHOD"),
    "Listeners": (
        "SOURCE_RANGES PROXY_PROTOCOL FORWARDED_FOR TLS_REF CONNECTION_LIMIT"
        " TIMEOUT_CLIENT_DATA TIMEOUT_MEMBER_CONNECT TIMEOUT_MEMBER_DATA"
        " TIMEOUT_TCP_INSPECT"
    ),
    "Health monitors and failures": (
        "ENABLE_MONITOR MONITOR_DELAY MONITOR_TIMEOUT MONITOR_RETRIES"
        " MONITOR_RETRIES_DOWN ON_ERROR"
    ),
    "Written by openstack-ccm": ("LOAD_BALANCER_ADDRESS OWNED_ID"),
}
"""Constants of each group, in their order."""


def annotation_tables() -> sheets.Tables:
    """Return a table per group of annotations."""
    return {
        title: sheets.table(HEADS, [_annotation(name) for name in names.split()])
        for title, names in GROUPS.items()
    }


def _annotation(name: str) -> tuple[str, ...]:
    constant = sheets.named(annotations, name)
    text = constant.text
    assert text is not None, f"{name}: not documented"
    effect = text.change or DEFAULT_EFFECT
    return sheets.code(constant.value), text.kind, text.default, text.meaning, effect


def class_tables() -> sheets.Tables:
    """Return the tables of StorageClasses, VolumeAttributesClasses and claims."""
    own = sheets.named(parameters, "TYPE"), sheets.named(parameters, "ZONE")
    rows = [_parameter(c) for c in (*own, sheets.named(mkfs_options, "KEY"))]
    options = [
        (sheets.code(fs_type), ", ".join(map(sheets.code, sorted(allowed))))
        for fs_type, allowed in mkfs_options.ALLOWED.items()
    ]
    claims = [
        _parameter(sheets.named(parameters, name))
        for name in ("AFFINITY", "ANTI_AFFINITY")
    ]
    return {
        "StorageClass": sheets.table(PARAMETERS, rows),
        "Options of mkfs": sheets.table(("file system", "options"), options),
        "VolumeAttributesClass": sheets.table(PARAMETERS, [_parameter(own[0])]),
        "PersistentVolumeClaim": sheets.table(PARAMETERS, claims),
    }


def _parameter(constant: sheets.Constant) -> tuple[str, ...]:
    text = constant.text
    assert text is not None, f"{constant.value}: not documented"
    users = ", ".join(text.used_by or ("csi-controller",))
    return sheets.code(constant.value), text.kind, text.default, text.meaning, users


def read_parameters() -> frozenset[str]:
    """Return the parameters and annotations that the code of volumes reads.

    They are the keys of `.get(...)` and `[...]` of parameters, changes, annotations,
    and of volume contexts.
    """
    found_keys: set[str] = set()
    for module in (parameters, mkfs_options, formatting):
        values = {c.name: c.value for c in sheets.constants(module)}
        tree = sheets.parsed(f"{module.__name__.replace('.', '/')}.py")
        for key in _keys_read(tree):
            found_keys |= {values[key]} if key in values else set()
    return frozenset(found_keys | {formatting.KEY})


def _keys_read(tree: ast.AST) -> Iterator[str]:
    for receiver, function, call in sheets.calls(tree):
        if function == "get" and receiver.rpartition(".")[2] in READ_FROM and call.args:
            yield ast.unparse(call.args[0])
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=ast.Tuple(elts=keys)) | ast.comprehension(
                iter=ast.Tuple(elts=keys)
            ):
                yield from map(ast.unparse, keys)


READ_FROM = ("parameters", "changes", "annotations", "mutable_parameters")
