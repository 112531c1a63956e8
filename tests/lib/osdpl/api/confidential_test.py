"""Secrets stay secret: references are accepted in their fields, and never shown."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from lib.kube import resources
from lib.osdpl.api import confidential, schema, schema_types, spec
from lib.osdpl.reconcile.snapshot import Refused
from lib.osdpl.rules import openstack
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import Cluster, Process
from tests.lib.osdpl.planted_secret import REFERENCE, TEXT, override, secret, shown
from tests.lib.osdpl.rules import examples

Path = tuple[str | int, ...]


def leaves(schema_: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield a path to each leaf of a schema; free keys are x."""
    if "properties" in schema_:
        for name, below in schema_["properties"].items():
            yield from leaves(below, (*path, name))
    elif isinstance(schema_.get("additionalProperties"), dict):
        yield from leaves(schema_["additionalProperties"], (*path, "x"))
    elif "items" in schema_:
        yield from leaves(schema_["items"], (*path, 0))
    else:
        yield path, schema_


def planted(path: Path) -> Any:
    """Return a spec with the reference at a path, and nothing else."""
    node: Any = REFERENCE
    for key in reversed(path):
        node = [node] if isinstance(key, int) else {key: node}
    return node


LEAVES = dict(leaves(schema.spec()))
ACCEPTED = {path for path, leaf in LEAVES.items() if schema_types.holds_secrets(leaf)}


def name(path: Path) -> str:
    return ".".join(map(str, path))


@pytest.mark.parametrize("path", LEAVES, ids=name)
def test_a_reference_is_accepted_where_the_schema_marks_a_secret(path: Path) -> None:
    fields = [str(problem) for problem in spec.problems(planted(path))]
    own = [text for text in fields if text.startswith(f"spec.{path[0]}")]
    own = [text for text in own if "the field is required" not in text]
    assert not own if path in ACCEPTED else own


def test_the_fields_of_secrets() -> None:
    """As in the reference; a new one is a decision."""
    names = sorted(map(name, ACCEPTED))
    print(*names, sep="\n")
    assert len(names) == 20
    assert {"common.charts.values", "common.infra.values"} <= set(names)
    assert "services" in names
    assert "features.stacklight.user.username" in names


def test_a_reference_below_an_open_field_is_refused() -> None:
    tree = {
        "migration": {"ingress": {"state": REFERENCE}},
        "common": {
            "openstack": {
                "values": {"a": [REFERENCE]},
                "releases": {"nova": {"version": REFERENCE}},
            }
        },
        "services": {"identity": {"keystone": {"values": {"a": [REFERENCE]}}}},
    }
    problems = [problem.field for problem in confidential.misplaced(tree)]
    assert problems == [
        "spec.migration.ingress.state",
        "spec.common.openstack.releases.nova.version",
    ]


def substitute(tree: Any, old: object, new: object) -> Any:
    """Return a tree in which each text equal to `old` is replaced."""
    if isinstance(tree, dict):
        return {key: substitute(value, old, new) for key, value in tree.items()}
    if isinstance(tree, list):
        return [substitute(item, old, new) for item in tree]
    return new if tree == old and isinstance(tree, str) else tree


def violating() -> Iterator[tuple[str, Any]]:
    """Yield each bad spec of the table of rules, once per text in it.

    In the place of the text is the reference.
    """
    for example in examples.EXAMPLES:
        tree = {
            key: value
            for key, value in example.invalid.items()
            if not key.startswith("_")
        }
        for text in sorted(set(texts(tree))):
            case = f"{example.rule}: {text[:30]}"
            yield case, substitute(tree, text, REFERENCE)


def texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for value in tree.values():
            yield from texts(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from texts(item)
    elif isinstance(tree, str):
        yield tree


VIOLATING = dict(violating())


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.mark.parametrize("case", VIOLATING)
def test_no_rule_shows_the_value_of_a_secret(
    cluster: Cluster, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secret(cluster)
    cluster.create()
    document = cluster.deployment()
    document["spec"] = override(document["spec"], VIOLATING[case])
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    process = Process(cluster)
    for _ in range(3):
        process.step()
    captured = capsys.readouterr()
    assert TEXT not in shown(cluster) + captured.out + captured.err


@pytest.mark.parametrize("path", sorted(ACCEPTED, key=str), ids=name)
@pytest.mark.parametrize("text", [TEXT, f"{TEXT}\n", f'"{TEXT}'], ids=repr)
def test_no_field_of_a_secret_is_shown(
    cluster: Cluster, path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when helm quotes it in its error."""
    secret(cluster, text)
    cluster.create()
    if path == ("services",):
        path = ("services", "identity", "keystone", "values")
    if path[-1] == "values":
        path = (*path, "conf", "motto")
    document = cluster.deployment()
    document["spec"] = override(document["spec"], planted(path))
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    process = Process(cluster)
    for _ in range(8):
        process.step()
    captured = capsys.readouterr()
    assert TEXT not in shown(cluster) + captured.out + captured.err


def test_a_secret_without_the_label_is_not_read(cluster: Cluster) -> None:
    """Neither its values nor the names of its keys, nor that it exists."""
    values: Any = {"services": {"identity": {"keystone": {"values": {"a": REFERENCE}}}}}
    secret(cluster, is_labelled=False)
    cluster.create(**values)
    Process(cluster).step()
    accepted = cluster.condition("Accepted")
    print(accepted["message"])
    assert accepted["reason"] == Refused.SECRET_MISSING
    assert "openstack.lcm.mirantis.com/osdpl_secret=true" in accepted["message"]
    secret(cluster)
    process = Process(cluster)
    process.settle()
    assert cluster.helm.upgrades["openstack-keystone"].values["a"] == TEXT


@pytest.mark.parametrize(
    ("change", "is_recognised"),
    [
        ({"features": {"stacklight": {"user": {"password": "other"}}}}, False),
        ({"services": {"x": {"y": {"values": {"db_password": "other"}}}}}, False),
        ({"services": {"x": {"y": {"values": {"replicas": 2}}}}}, True),
        ({"region_name": "Elsewhere"}, True),
    ],
)
def test_hashes_in_the_status_are_made_without_secrets(
    change: Any, is_recognised: bool
) -> None:
    base = {
        "region_name": "RegionOne",
        "features": {"stacklight": {"user": {"password": "guessable"}}},
        "services": {"x": {"y": {"values": {"db_password": "a", "replicas": 1}}}},
    }
    changed = override(base, change)
    is_changed = openstack.hashes(changed) != openstack.hashes(base)
    assert is_changed == is_recognised


def test_a_user_in_the_address_of_charts_is_refused_and_not_shown(
    cluster: Cluster,
) -> None:
    url = f"https://user:{TEXT}@charts.example/x"
    common = ground.spec(url)["common"]
    cluster.create(common=common)
    process = Process(cluster)
    for _ in range(5):
        process.step()
    accepted = cluster.condition("Accepted")
    assert accepted["reason"] == Refused.INVALID_SPEC
    assert "repositories[0].url" in accepted["message"]
    conditions = json.dumps(cluster.deployment()["status"])
    assert TEXT not in conditions + json.dumps(
        cluster.documents(resources.HELM_BUNDLES)
    )
