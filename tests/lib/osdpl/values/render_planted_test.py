"""A Secret planted at each path of the values that a chart gets is never shown.

The paths are those that are rendered, so a new value is in the table by itself.
"""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.osdpl.api import model
from lib.osdpl.reconcile import planning
from lib.osdpl.reconcile.snapshot import Desired
from lib.osdpl.values import catalog, credentials
from tests.lib.osdpl import planted_secret as planted
from tests.lib.osdpl.ground import Cluster, Process

Path = tuple[str, ...]


def nodes(tree: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each node below the root, objects included."""
    for key, value in tree.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from nodes(value, (*path, key))


def desired(cluster: Cluster, change: Any) -> Desired:
    """Return what an object with a change of its spec means."""
    document = cluster.deployment()
    document["spec"] = planted.override(document["spec"], change)
    secret = credentials.Stored({"key": planted.TEXT.encode()}, is_referable=True)
    return planning.desired_of(document, {planted.SECRET: secret}, None)


def shown(result: Desired) -> str:
    """Return all that can reach a condition, an Event, a status or a HelmBundle."""
    texts = list(map(str, result.problems))
    if result.rendered is None:
        return " ".join(texts)
    for refusal in result.rendered.refusals:
        texts += map(str, refusal.problems)
    texts += [*result.rendered.ignored, result.rendered.fingerprint]
    for release in releases(result):
        texts.append(repr(dataclasses.replace(release, values={})))
    return " ".join(texts)


def releases(result: Desired) -> Iterator[model.Release]:
    for bundle in result.rendered.bundles if result.rendered else ():
        yield from bundle.releases


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    cluster = Cluster(tmp_path_factory.mktemp("planted"))
    cluster.create()
    return cluster


@pytest.fixture(scope="module")
def rendered(cluster: Cluster) -> Mapping[str, model.Release]:
    return {release.name: release for release in releases(desired(cluster, {}))}


def change_of(release: model.Release, tree: Any) -> Any:
    return {"services": {release.service: {release.chart.name: {"values": tree}}}}


def at(path: Path) -> Any:
    tree: Any = planted.REFERENCE
    for key in reversed(path):
        tree = {key: tree}
    return tree


@pytest.mark.parametrize("name", sorted(catalog.BY_RELEASE))
def test_no_message_shows_it(
    name: str, cluster: Cluster, rendered: Mapping[str, model.Release]
) -> None:
    release = rendered[name]
    leaks, used, refused = [], 0, 0
    for path, _ in nodes(release.values):
        result = desired(cluster, change_of(release, at(path)))
        leaks += [path] if planted.TEXT in shown(result) else []
        own = [each for each in releases(result) if each.name == name]
        used += any(planted.TEXT in repr(each.values) for each in own)
        refused += not own
    print(f"{name}: {used} values used, {refused} refused for their type")
    assert leaks == []
    assert used > 0


@pytest.mark.parametrize("name", sorted(catalog.BY_RELEASE))
def test_no_written_object_shows_it(
    name: str,
    rendered: Mapping[str, model.Release],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the reference in the place of each text of a chart at once."""
    release = rendered[name]
    tree: Any = {}
    for path, value in nodes(release.values):
        if isinstance(value, str):
            tree = planted.override(tree, at(path))
    own = Cluster(tmp_path)
    planted.secret(own)
    own.create(**change_of(release, tree))
    process = Process(own)
    for _ in range(16):
        process.step()
    assert planted.TEXT in repr(own.helm.upgrades[name].values)
    captured = capsys.readouterr()
    assert planted.TEXT not in planted.shown(own) + captured.out + captured.err
