"""No field of the spec is ignored silently: a table shows what each of them does.

A field is set on top of the sample. Its effect is that other values are rendered
(applied), that a service or the whole is refused (refused), that it is named among the
fields without effect (reported), or that the feature it belongs to is off (off).
"""

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.osdpl.api import hashing, model, schema, schema_types, spec
from lib.osdpl.reconcile import desire
from lib.osdpl.values import ignored, layers, render, required_secrets
from lib.process import config
from tests.lib.osdpl import samples

Path = tuple[str, ...]
EFFECTS = ("applied", "refused", "reported", "off")
SILENT = {
    "draft": "read before anything is rendered",
    **{
        f"timeouts.application_readiness.{name}.{key}": "read by upgrades of OpenStack"
        for name in ("nova", "neutron")
        for key in ("timeout", "delay")
    },
}


def leaves(node: schema_types.Schema, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each field; the keys of maps are called "x"."""
    if "properties" in node:
        for name, below in node["properties"].items():
            yield from leaves(below, (*path, name))
    elif isinstance(node.get("additionalProperties"), dict):
        yield from leaves(node["additionalProperties"], (*path, key_of(path)))
    else:
        yield path


def key_of(path: Path) -> str:
    """Return a key for a map: of a DaemonSet, of a label, or any."""
    known = {
        "nova": "nova_compute",
        "libvirt": "libvirt_libvirt",
        "neutron": "neutron_l3-agent",
    }
    if path == ("nodes",):
        return "rack::a"
    return known.get(path[-1], "x") if path[0] == "nodes" else "x"


BY_TYPE: Mapping[str, list[Any]] = {
    "boolean": [True, False],
    "integer": [7],
    "number": [2.5],
    "string": ["2025.2.0"],
}
ANYTHING = {"conf": {"zz": {"DEFAULT": {"yy": "xx"}}}}


def samples_of(node: schema_types.Schema) -> list[Any]:
    """Return values of a schema; of an object those that it requires."""
    if node is schema_types.SECRET:
        return ["text"]
    if "enum" in node or "pattern" in node:
        return list(node.get("enum", [f"sha256:{'0' * 64}"]))
    if node.get("type") == "array":
        whole = node["items"].get("properties")
        if whole:
            return [[{name: samples_of(item)[0] for name, item in whole.items()}]]
        return [[item] for item in samples_of(node["items"])]
    if "properties" in node:
        return [minimal(node)]
    return BY_TYPE.get(node.get("type", ""), [ANYTHING])


def minimal(node: schema_types.Schema) -> dict[str, Any]:
    """Return an object with the fields that its schema requires."""
    required = node.get("required", ())
    return {name: samples_of(node["properties"][name])[0] for name in required}


def put(
    tree: dict[str, Any], node: schema_types.Schema, path: Path, value: Any
) -> None:
    """Set a field; objects on the way get the fields that they require."""
    for key in path[:-1]:
        below = node.get("properties", {}).get(key) or node["additionalProperties"]
        tree = tree.setdefault(key, minimal(below))
        node = below
    tree[path[-1]] = value


def at(node: Mapping[str, Any], path: Path) -> Any:
    for key in path:
        node = node.get("properties", {}).get(key) or node["additionalProperties"]
    return node


@functools.cache
def usual() -> tuple[object, str]:
    return outcome(samples.document())


def outcome(document: dict[str, Any]) -> tuple[object, str]:
    """Return a digest of what is rendered or refused, and what is reported."""
    try:
        deployment = spec.parse(document)
        services = layers.services(layers.effective(deployment.spec))
        rendered = render.render(
            render.Inputs(
                deployment=deployment,
                credentials=required_secrets.placeholders(services),
            )
        )
    except config.ConfigError as error:
        return ("refused", str(error)), ""
    if rendered.refusals:
        return ("refused", str(rendered.refusals)), " ".join(rendered.ignored)
    releases = [release for bundle in rendered.bundles for release in bundle.releases]
    values = {
        release.name: [release.values, str(release.chart)] for release in releases
    }
    return ("rendered", hashing.digest(values)), " ".join(rendered.ignored)


def is_off(document: Mapping[str, Any], path: Path) -> bool:
    """Report whether a field is a detail of a feature that is not enabled."""
    node: Any = document["spec"]
    fields: Any = schema.spec()
    for key in path[:-1]:
        node = node.get(key) or {}
        fields = fields.get("properties", {}).get(key) or fields["additionalProperties"]
        is_feature = "enabled" in fields.get("properties", {})
        if is_feature and path[-1] != "enabled" and not node.get("enabled"):
            return True
    return False


def effect(path: Path) -> str:
    """Return what a field does; empty: nothing, and nothing is said about it."""
    for value in samples_of(at(schema.spec(), path)):
        document = samples.document()
        put(document["spec"], schema.spec(), path, copy.deepcopy(value))
        result, reported = outcome(document)
        if isinstance(result, tuple) and result[0] == "refused":
            return "refused"
        prefixes = [".".join(path[:count]) for count in range(1, len(path) + 1)]
        if any(f"spec.{prefix}: " in reported for prefix in prefixes):
            return "reported"
        if result != usual()[0]:
            return "applied"
        if is_off(document, path):
            return "off"
    return ""


def test_every_field_has_an_effect_or_is_reported() -> None:
    """The table; a field without an effect fails."""
    rows = {path: effect(path) for path in leaves(schema.spec())}
    for path, shown in rows.items():
        print(f"{shown or 'NOTHING':9} spec.{'.'.join(path)}")
    silent = {".".join(path) for path, shown in rows.items() if not shown}
    assert silent == set(SILENT)
    assert set(rows.values()) >= set(EFFECTS)
    assert len(rows) > 300


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"migration": {"ingress": {"state": "absent"}}}, "migration", "not supported"),
        (
            {"features": {"octavia": {"default_provider": "ovn"}}},
            "features.octavia",
            "load-balancer is not in spec.features.services",
        ),
        (
            {"features": {"logging": {"heat": {"level": "DEBUG"}}}},
            "features.logging.heat",
            "orchestration",
        ),
        (
            {"features": {"nova": {"console": {"spice": {"enabled": True}}}}},
            "features.nova.console.spice.enabled",
            "noVNC is enabled",
        ),
        (
            {"nodes": {"a::b": {"services": {"metric": {"gnocchi": {}}}}}},
            "nodes.a::b.services.metric",
            "metric is not in",
        ),
    ],
)
def test_a_field_without_effect_is_named(
    changes: model.Tree, path: str, words: str
) -> None:
    rendered = samples.rendered(**changes)
    (text,) = rendered.ignored
    assert text.startswith(f"spec.{path}: ")
    assert words in text
    assert rendered.refusals == ()


def test_the_sample_has_no_field_without_effect() -> None:
    assert samples.rendered().ignored == ()
    assert desire.desire(samples.document(), {}, None).problems == ()


def test_a_desired_service_is_refused_and_not_reported() -> None:
    features = {"services": ["load-balancer"], "octavia": {"default_provider": "ovn"}}
    rendered = samples.rendered(features=features)
    assert [refusal.service for refusal in rendered.refusals] == ["load-balancer"]
    assert rendered.ignored == ()
    assert ignored.fields({}, ()) == ()
