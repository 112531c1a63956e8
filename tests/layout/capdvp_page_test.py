"""docs/capdvp.md has meaning and remedy of each reason of a condition, and no other."""

import pathlib

from lib.cloud import machines
from lib.cloud.dvp.machines import machine_reasons
from lib.cloud.steps import CommonReason
from lib.machines.clusters import model

PAGE = pathlib.Path("docs/capdvp.md")
REASONS = {
    *map(str, machines.Reason),
    *map(str, machine_reasons.DvpMachineReason),
    *map(str, model.ClusterReason),
    # Of the reasons that all clouds have, conditions of machines have this one.
    str(CommonReason.IMMUTABLE),
}


def rows(text: str) -> dict[str, tuple[str, ...]]:
    _, _, conditions = text.partition("## Conditions")
    return {
        cells[0].strip("`"): tuple(cells[1:])
        for line in conditions.splitlines()
        if line.startswith("| `")
        for cells in [[cell.strip() for cell in line.strip("| ").split(" | ")]]
    }


def test_each_reason_has_meaning_and_remedy() -> None:
    documented = rows(PAGE.read_text())
    for reason in sorted(REASONS | documented.keys()):
        print(f"{reason:32} {documented.get(reason, ('MISSING',))[0]}")
    assert REASONS - documented.keys() == set()
    assert documented.keys() - REASONS == set()
    assert all(len(cells) == 2 and all(cells) for cells in documented.values())


def test_the_page_names_what_is_not_implemented() -> None:
    _, _, rest = PAGE.read_text().partition("## Not implemented")
    section = rest.partition("\n## ")[0]
    assert "In-place updates" in section
    assert "storage class" in section
