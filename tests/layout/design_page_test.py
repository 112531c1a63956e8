"""docs/design.md does not call a package unused that a program runs."""

import pathlib
import re
import sys

from lib.ccm import manager
from lib.csi import driver
from lib.discoverer import discoverer

PROGRAMS = (manager, driver, discoverer)
ROW = re.compile(r"^\| `(lib/[a-z_/]+)` \| (.*?) \|", re.MULTILINE)


def test_a_package_that_a_program_runs_is_not_called_unused() -> None:
    assert all(program.__name__ in sys.modules for program in PROGRAMS)
    rows = dict(ROW.findall(pathlib.Path("docs/design.md").read_text()))
    unused = [name for name, text in rows.items() if "no program runs it" in text]
    print(f"{len(rows)} packages, not run by any program: {unused or 'none'}")
    assert {"lib/balancers", "lib/volumes", "lib/discovery"} <= rows.keys()
    assert [name for name in unused if name.replace("/", ".") in sys.modules] == []
