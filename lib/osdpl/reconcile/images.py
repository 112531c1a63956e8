"""Images that are not of OpenStack's version: those of the installed chart. Pure.

Rules: such an image is never in the values: the chart's own scripts and configuration
are written for it, and two charts of one version may have different ones. With another
registry it is read from the content of the chart. The message broker never changes its
minor version by itself: only some steps are supported by RabbitMQ, in one direction.

Source: rabbitmq.com, Upgrading RabbitMQ: each step to another minor version has to be
supported, and feature flags to be enabled before; there is no downgrade.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from lib.helm import archive, manifest, yaml_text
from lib.osdpl.api import merge, model, versions

BROKER_RELEASE = "openstack-rabbitmq"
BROKER_KEY = "rabbitmq"
_FIELD = f"spec.services.messaging.rabbitmq.values.images.tags.{BROKER_KEY}"
_BROKER = re.compile(r"(?:^|/)rabbitmq:v?(\d+)\.(\d+)")


def relocated(values: model.Tree, chart: bytes, base_url: str) -> model.Tree:
    """Return values with the other images of a chart in another registry.

    chart: its archive. base_url: artifacts.images_base_url; empty: nothing changes.
    """
    if not base_url:
        return values
    tags = {
        key: versions.relocate(reference, base_url)
        for key, reference in _tags(chart).items()
        if isinstance(reference, str)
    }
    base: model.Tree = {"images": {"tags": tags}}
    merged: model.Tree = merge.merge(base, values)
    return merged


def _tags(chart: bytes) -> Mapping[str, Any]:
    """Return the images of a chart by key; empty when it has none."""
    try:
        values = yaml_text.load((archive.member(chart, "values.yaml") or b"").decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}  # helm explains what is wrong with it
    images = values.get("images") if isinstance(values, Mapping) else None
    tags = images.get("tags") if isinstance(images, Mapping) else None
    return tags if isinstance(tags, Mapping) else {}


def broker_change(
    release: model.Release, before: Sequence[str], after: str
) -> str | None:
    """Return why the broker must not be changed by a run of helm; None: it may be.

    before, after: manifests. An image that the spec names is the user's decision.
    """
    tags = (release.values.get("images") or {}).get("tags") or {}
    if release.name != BROKER_RELEASE or BROKER_KEY in tags:
        return None
    new = next(_brokers(after), None)
    for text in before:
        old = next(_brokers(text), None)
        if old is not None and new is not None and old != new:
            return (
                f"RabbitMQ {_named(old)} would become {_named(new)}, the image of the"
                f" chart: set {_FIELD} to the image to run; RabbitMQ supports only some"
                " upgrades in place, and no downgrade"
            )
    return None


def _named(version: tuple[int, int]) -> str:
    """Return a version; the image is not shown, its name may be from a Secret."""
    return f"{version[0]}.{version[1]}"


def _brokers(text: str) -> Iterator[tuple[int, int]]:
    """Yield the version of the broker in a manifest."""
    for workload in manifest.objects(text, (model.Kind.STATEFUL_SET,)):
        pod = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
        for container in pod.get("containers") or ():
            image = str(container.get("image"))
            match = _BROKER.search(image)
            if match is not None:
                yield int(match[1]), int(match[2])
