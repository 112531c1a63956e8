"""The process's registry of metrics, and how it is shown."""

import dataclasses
import os

import prometheus_client
from prometheus_client import exposition

COMMIT = "MOORING_COMMIT"
"""Environment variable with the commit, set in images."""


@dataclasses.dataclass(frozen=True, slots=True)
class Build:
    """Which program this is. revision: commit, empty where it is not known."""

    component: str
    version: str
    revision: str = dataclasses.field(
        default_factory=lambda: os.environ.get(COMMIT, "")
    )


def new_registry(build: Build) -> prometheus_client.CollectorRegistry:
    """Create a registry with metrics of process, interpreter and build."""
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    prometheus_client.PlatformCollector(registry=registry)
    prometheus_client.GCCollector(registry=registry)
    info = prometheus_client.Gauge(
        "mooring_build_info",
        "Always 1; the labels identify the build.",
        ("component", "version", "revision"),
        registry=registry,
    )
    info.labels(build.component, build.version, build.revision).set(1)
    return registry


@dataclasses.dataclass(frozen=True, slots=True)
class RenderedMetrics:
    """Metrics as text, and the content type of their format."""

    content_type: str
    body: bytes


def render(
    registry: prometheus_client.CollectorRegistry, accept: str
) -> RenderedMetrics:
    """Write all metrics in the best format that the Accept header allows."""
    encode, content_type = exposition.choose_encoder(accept)
    return RenderedMetrics(content_type, encode(registry))
