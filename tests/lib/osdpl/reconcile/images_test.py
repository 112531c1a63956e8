"""Images that are not of OpenStack's version are those of the installed chart."""

import io
import json
import pathlib
import tarfile
from typing import Any

import pytest

from lib.osdpl.reconcile import images
from tests.lib.osdpl import samples
from tests.lib.osdpl.ground import Cluster, Process

OLD, NEW = "quay.io/airshipit/rabbitmq:3.10.18", "docker.io/rabbitmq:4.3.5"


def archived(values: str) -> bytes:
    """Return a chart's archive with values."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("rabbitmq/values.yaml")
        info.size = len(values)
        tar.addfile(info, io.BytesIO(values.encode()))
    return buffer.getvalue()


@pytest.mark.parametrize("tag", ["2025.1.0", "2025.2.0", "2026.1.0", "2026.1.5+abc"])
def test_no_value_names_an_image_of_another_version(tag: str) -> None:
    releases = {"releases": {"version": tag}}
    rendered = samples.rendered(common={"openstack": releases, "infra": releases})
    for bundle in rendered.bundles:
        for release in bundle.releases:
            tags = release.values["images"]["tags"]
            strange = {key: text for key, text in tags.items() if "2026.1-" not in text}
            assert strange == {}, release.name
    broker = samples.release(rendered, "openstack-rabbitmq")
    assert "rabbitmq" not in broker.values["images"]["tags"]


def test_images_of_the_chart_come_from_another_registry() -> None:
    chart = archived(
        "images: {tags: {rabbitmq: quay.io/a/rabbitmq:3, x: y:1, n: null}}"
    )
    values: dict[str, Any] = {"images": {"tags": {"x": "own:2"}}, "a": 1}
    moved = images.relocated(values, chart, "registry.local:5000/m")
    tags = {"rabbitmq": "registry.local:5000/m/a/rabbitmq:3", "x": "own:2"}
    assert moved == {"images": {"tags": tags}, "a": 1}
    assert images.relocated(values, chart, "") is values
    assert images.relocated(values, archived("["), "r")["a"] == 1


def stateful_set(image: str) -> dict[str, Any]:
    containers = [{"name": "rabbitmq", "image": image}]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "openstack-rabbitmq-rabbitmq"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


@pytest.mark.parametrize(
    ("before", "after", "tags", "is_refused"),
    [
        (OLD, NEW, {}, True),
        (NEW, OLD, {}, True),
        ("docker.io/library/rabbitmq:3.13.0", OLD, {}, True),
        (OLD, "quay.io/airshipit/rabbitmq:3.10.20", {}, False),
        (OLD, "registry.local/airshipit/rabbitmq:3.10.18", {}, False),
        (OLD, NEW, {"rabbitmq": NEW}, False),
        ("mirror/other:1", NEW, {}, False),
    ],
)
def test_the_broker_never_changes_by_itself(
    before: str, after: str, tags: dict[str, str], is_refused: bool
) -> None:
    release = samples.release(samples.rendered(), "openstack-rabbitmq")
    release.values["images"]["tags"].update(tags)
    texts = [json.dumps(stateful_set(before), indent=1)]
    refusal = images.broker_change(
        release, texts, json.dumps(stateful_set(after), indent=1)
    )
    print(refusal)
    assert (refusal is not None) == is_refused


def test_a_chart_with_another_broker_waits_for_the_user(tmp_path: pathlib.Path) -> None:
    """The condition names the field; with the image in the spec it is installed."""
    cluster = Cluster(tmp_path)

    def objects(values: Any) -> list[Any]:
        image = values["images"]["tags"].get("rabbitmq", current[0])
        return [stateful_set(image)]

    current = [OLD]
    cluster.helm.objects["openstack-rabbitmq"] = objects
    cluster.create()
    process = Process(cluster)
    for _ in range(20):
        process.step()
    current[0] = NEW
    name = "openstack-rabbitmq"
    version = {"releases": {"version": "2026.1.0", "rabbitmq": {"version": "2026.1.9"}}}
    chart = cluster.folder / "charts" / "rabbitmq" / "Chart.yaml"
    chart.write_text("apiVersion: v2\nname: rabbitmq\nversion: 2026.1.9\n")
    common = cluster.deployment()["spec"]["common"]
    cluster.change(common={**common, "infra": {**common["infra"], **version}})
    cluster.helm.runs.clear()
    for _ in range(5):
        process.step()
    assert f"upgrade {name}" not in cluster.helm.runs
    message = cluster.condition("Applied")["message"]
    assert "images.tags.rabbitmq" in message
    tags = {"images": {"tags": {"rabbitmq": NEW}}}
    cluster.change(services={"messaging": {"rabbitmq": {"values": tags}}})
    for _ in range(5):
        process.step()
        cluster.clock.seconds += 400
    assert f"upgrade {name}" in cluster.helm.runs
