"""Charts as a checkout has them: with symbolic links to the library and to components.

Pants puts the files behind the links into a sandbox, so the links are made here again.
"""

import pathlib
import shutil
import tarfile
from collections.abc import Callable

from lib.lab.artifacts import go_modules
from lib.lab.charts import charts
from tests.lab.charts import rendering

Run = Callable[..., str]
"""Runs helm with arguments; returns its standard output."""


def check(run: Run, snapshot: charts.Snapshot, folder: pathlib.Path) -> None:
    """Assert that helm lints, renders and packages the chart as without links.

    folder: for a checkout, and for archives.
    """
    chart = _checkout(folder, snapshot.chart)
    values = ("--values", snapshot.values(rendering.ROOT))
    place = ("--namespace", snapshot.namespace)
    version = ("--kube-version", go_modules.KUBERNETES_VERSION)
    assert "0 chart(s) failed" in run("lint", "--strict", chart, *values)
    archives = []
    rendered = []
    for number, source in enumerate((chart, charts.folder(rendering.ROOT, chart.name))):
        target = folder / f"archives-{number}"
        output = run("package", source, "--destination", target)
        archives.append(pathlib.Path(output.rpartition(": ")[2].strip()))
        for path in (source, archives[-1]):
            rendered.append(
                run("template", chart.name, path, *place, *version, *values)
            )
    with_links, without = (sorted(tarfile.open(file).getnames()) for file in archives)
    print(f"{chart.name}: {len(with_links)} files in the archive")
    assert with_links == without, set(with_links) ^ set(without)
    assert len(set(rendered)) == 1


def _checkout(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Copy the charts of the sandbox, with links in one; return its folder."""
    top = folder / "charts"
    shutil.copytree(rendering.ROOT / "charts", top, symlinks=True)
    linked = []
    for part in sorted((top / name / "charts").iterdir()):
        if not part.is_symlink():
            shutil.rmtree(part)
            part.symlink_to(pathlib.Path("../..") / part.name)
        linked.append(part.name)
    assert charts.LIBRARY in linked
    return top / name
