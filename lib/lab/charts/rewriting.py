"""Writes what helm renders from the charts of a checkout: `mooring lab charts`."""

import pathlib

from lib.lab import places
from lib.lab.charts import charts, clusterctl


def rewrite(where: places.Places, root: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """Render every snapshot into its file.

    Returns the files that have changed: snapshots, and components for clusterctl.

    Raises:
        LabError: as `charts.render`; the files before it are written by then.
    """
    changed = []
    for snapshot in charts.SNAPSHOTS:
        file, text = snapshot.file(root), charts.render(where, root, snapshot)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            changed.append(file)
    components = clusterctl.rewrite(where, root)
    return (*changed, components) if components else tuple(changed)
