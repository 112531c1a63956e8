"""An umbrella chart, held against the charts of its components."""

import pathlib
import re
from collections.abc import Mapping, Sequence

import yaml

from lib.lab import places
from lib.lab.charts import charts
from tests.lab.charts import rendering

Documents = Mapping[str, Sequence[str]]
"""Texts of documents by the path of the template: a template may have several."""
_SOURCE = re.compile(r"# Source: (\S+)\n")


def check(
    renderer: places.Places, snapshot: charts.Snapshot, folder: pathlib.Path
) -> None:
    """Assert that it renders what its components render alone, and its own templates.

    A component has its part of the values, and those that are global. folder: for
    files with values.
    """
    rendered = charts.render(renderer, rendering.ROOT, snapshot)
    values = snapshot.all_values(rendering.ROOT)
    expected: dict[str, Sequence[str]] = {}
    for component in charts.UMBRELLAS[snapshot.chart]:
        if not values["components"][component]:
            continue
        file = folder / f"{component}.yaml"
        own = {**values.get(component, {}), "global": values["global"]}
        file.write_text(yaml.safe_dump(own))
        chart = charts.folder(rendering.ROOT, component)
        alone = charts.render_from(renderer, chart, file, snapshot)
        for path, texts in _documents(alone).items():
            expected[f"{snapshot.chart}/charts/{path}"] = texts
    observed = _documents(rendered)
    top = f"{snapshot.chart}/templates/"
    of_components = {
        path: texts for path, texts in observed.items() if not path.startswith(top)
    }
    print(f"{snapshot.name:16} {len(expected)} templates of components")
    assert of_components == expected
    assert expected


def _documents(rendered: str) -> Documents:
    result: dict[str, list[str]] = {}
    for document in re.split(r"^---\n", rendered, flags=re.MULTILINE):
        if source := _SOURCE.match(document):
            text = document[source.end() :].rstrip()
            result.setdefault(source[1], []).append(text)
    return result
