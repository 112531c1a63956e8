"""Writes the tables of docs/reference, each from the code that has the rows."""

import functools
import pathlib
import sys
from collections.abc import Callable, Mapping

from tests.reference import (
    chart_values,
    cloud_conf,
    cloud_permissions,
    decisions,
    layout_changes,
    layout_inputs,
    measurements,
    permissions,
    programs,
    requests,
    sheets,
    tool,
)

FOLDER = pathlib.Path("docs/reference")
PAGES: Mapping[str, Callable[[], sheets.Tables]] = {
    "chart-values.md": chart_values.tables,
    "cloud-conf.md": cloud_conf.tables,
    "cloud-permissions.md": cloud_permissions.tables,
    "service-annotations.md": requests.annotation_tables,
    "storage-classes.md": requests.class_tables,
    "metrics.md": measurements.tables,
    "rbac.md": permissions.tables,
    "mooring-flags.md": tool.tables,
    "../decisions/README.md": decisions.tables,
    "../layout-changes.md": layout_changes.tables,
    "../layouts.md": layout_inputs.tables,
    **{
        f"{name}-flags.md": functools.partial(programs.flag_tables, name)
        for name in programs.FLAGS
    },
}


def main() -> None:
    """Write each page whose tables differ from the code."""
    for name, tables in PAGES.items():
        path = FOLDER / name
        text = path.read_text()
        current = sheets.filled(text, tables())
        if current != text:
            path.write_text(current)
            sys.stdout.write(f"{path}: written\n")
    sys.stdout.write(f"{len(PAGES)} pages\n")


if __name__ == "__main__":
    main()
