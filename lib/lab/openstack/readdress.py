"""The SQL that moves a restored OpenStack to other ports and another folder; pure.

Ports stand in the catalogue (keystone.endpoint) and in nova's list of cells; glance
keeps the absolute paths of its images. All else comes from configuration files.
"""

import pathlib
from collections.abc import Mapping

from lib.lab.openstack import layout


def statements(
    old: Mapping[str, int], new: Mapping[str, int], images: pathlib.Path
) -> str:
    """Return the statements. old, new: port by program. images: glance's folder.

    Each column changes in one statement, so that blocks of ports may overlap.
    """
    cases = " ".join(
        f"WHEN url LIKE 'http://127.0.0.1:{old[name]}%'"
        f" THEN REPLACE(url, ':{old[name]}', ':{new[name]}')"
        for name in layout.SERVICES
    )
    database = layout.DATABASE
    folder = str(images).replace("\\", "\\\\").replace("'", "''")
    # What varies are numbers, and a path of our own that is quoted.
    return (
        f"UPDATE keystone.endpoint SET url = CASE {cases} ELSE url END;"  # noqa: S608
        " UPDATE nova_api.cell_mappings SET database_connection ="
        f" REPLACE(database_connection, ':{old[database]}/', ':{new[database]}/');"
        " UPDATE glance.image_locations SET value ="
        f" CONCAT('file://{folder}/', SUBSTRING_INDEX(value, '/', -1));"
    )
