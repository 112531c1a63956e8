"""Each metric of a dashboard is one of its component, by the code."""

import functools
import json
import pathlib
import re
from typing import Any

import pytest

from tests.reference import measurements

CHARTS = ("capdvp", "cloud-data-discoverer", "dvp-ccm", "openstack-ccm")
_SERIES = re.compile(r"(\w+)\{([^}]*)\}")
_ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def panels(chart: str) -> list[dict[str, Any]]:
    """Return the panels of a chart's dashboard."""
    file = pathlib.Path("charts") / chart / "files" / "dashboard.json"
    return list(json.loads(file.read_text())["panels"])


@functools.cache
def components() -> dict[str, str]:
    """Return the components that export a metric, by its name."""
    rows = (
        line for text in measurements.tables().values() for line in text.splitlines()
    )
    return {
        match[1]: line.split(" | ")[4] for line in rows if (match := _ROW.match(line))
    }


@pytest.mark.parametrize("chart", CHARTS)
def test_each_metric_is_on_the_page_of_its_component(chart: str) -> None:
    """Prints panel and metric; the job is that of the chart's PodMonitor."""
    exported = components()
    for panel in panels(chart):
        for target in panel["targets"]:
            series = _SERIES.findall(target["expr"])
            print(f"{chart:24} {panel['title']:40} {[name for name, _ in series]}")
            assert series, panel["title"]
            for name, labels in series:
                assert chart in exported[name], name
                assert labels == f'job="{chart}"'


@pytest.mark.parametrize("chart", CHARTS)
def test_panels_do_not_overlap(chart: str) -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels(chart)]
    assert len(places) == len(set(places)) >= 6
    numbers = [panel["id"] for panel in panels(chart)]
    assert len(numbers) == len(set(numbers))
