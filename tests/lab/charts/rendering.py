"""What helm renders from a chart, held against its snapshots; nothing else runs."""

import difflib
import pathlib
import re
import tarfile
from collections.abc import Sequence

from lib.lab import errors, places
from lib.lab.charts import charts, helm

ROOT = pathlib.Path()
"""A checkout, or a sandbox with the chart in it."""
_UNRELEASED = re.compile(
    r"/(BUILD|snapshots/.*|clusterctl/.*|shared\.schema\.json)$"
    r"|/charts/.*/(README\.md|\.helmignore|charts/.*)$"
)
"""Files of a chart's folder, and of those to which it links, that no archive has."""


def check_snapshot(renderer: places.Places, snapshot: charts.Snapshot) -> None:
    """Templates, values and files that change, change the snapshot with them."""
    kept = snapshot.file(ROOT).read_text()
    rendered = charts.render(renderer, ROOT, snapshot)
    change = difflib.unified_diff(
        kept.splitlines(), rendered.splitlines(), "kept", "rendered"
    )
    print("\n".join(change))
    assert kept == rendered
    folder = charts.folder(ROOT, snapshot.chart)
    # A warning is a fault, too.
    words = ("lint", "--strict", folder, "--values", snapshot.values(ROOT))
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.run(renderer, words)
    assert released(renderer, snapshot) == kept


def released(renderer: places.Places, snapshot: charts.Snapshot) -> str:
    """Package a chart, and render what would be released with nothing beside it."""
    folder, target = charts.folder(ROOT, snapshot.chart), renderer.state / "released"
    output = helm.run(renderer, ("package", folder, "--destination", target))
    archive = pathlib.Path(output.rpartition(": ")[2].strip())
    names = set(tarfile.open(archive).getnames())
    library = {f"charts/{charts.LIBRARY}/{name}" for name in charts.library(ROOT)}
    assert {f"{snapshot.chart}/{name}" for name in library} <= names
    assert [name for name in names if _UNRELEASED.search(name)] == []
    print(f"{archive.name}: {len(names)} files, {len(library)} of them the library's")
    return charts.render_from(renderer, archive, snapshot.values(ROOT), snapshot)


def check_refusals(
    renderer: places.Places,
    chart: str,
    rows: Sequence[tuple[str, str]],
    name: str = "",
) -> None:
    """Nothing is rendered; helm names the field, and what would be right.

    rows: what is set, and what helm must name. name: of the values; empty: the first.
    """
    wrong = []
    snapshots = charts.of(chart)
    usual = snapshots[name or next(iter(snapshots))]
    for setting, named in rows:
        words = ("template", charts.folder(ROOT, chart), "--set", setting)
        try:
            helm.run(renderer, (*words, "--values", usual.values(ROOT)))
            message = "rendered"
        except errors.LabError as error:
            message = " ".join(str(error).split())
        print(f"{chart:22} {setting:32} {message[-160:]}")
        if named not in message:
            wrong.append((setting, message))
    assert wrong == []
