"""docs/dvp.md lists the rights in the parent that `mooring doctor` reviews."""

import pathlib
import re

from lib.cloud.dvp import needs

ROW = re.compile(
    r"\| ([a-z-]+)(?:, \w+)? \| ([a-z, ]+)(?: \([^)]*\))? \| ([a-z, ]+) \|"
)


def test_the_table_of_permissions_is_that_of_the_doctor() -> None:
    """Each component, resource and verb, in both directions."""
    text = pathlib.Path("docs/dvp.md").read_text()
    section = text.partition("## Permissions in the parent")[2].partition("\n## ")[0]
    listed = {
        (component, resource, verb)
        for component, resources, verbs in ROW.findall(section)
        if component in needs.COMPONENTS
        for resource in resources.split(", ")
        for verb in verbs.split(", ")
    }
    needed = {
        (component, need.resource.plural, verb)
        for component, rows in needs.COMPONENTS.items()
        for need in rows
        for verb in need.verbs
    }
    print(len(needed), "rights")
    assert listed == needed
