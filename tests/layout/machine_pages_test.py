"""Each page of machines has meaning and remedy of each reason of a condition."""

import pathlib
from collections.abc import Mapping

import pytest

from lib.cloud import machines
from lib.cloud.dvp.machines import machine_reasons
from lib.cloud.steps import CommonReason
from lib.cloud.zvirt.machines import vm_reasons
from lib.machines.clusters import model

# Of the reasons that all clouds have, conditions of machines have these.
REASONS: Mapping[str, set[str]] = {
    "docs/capdvp.md": {
        *map(str, machines.Reason),
        *map(str, machine_reasons.DvpMachineReason),
        *map(str, model.ClusterReason),
        str(CommonReason.IMMUTABLE),
    },
    # A ZvirtCluster has no finalizer: its deletion shows nothing.
    "docs/capz.md": {
        *map(str, machines.Reason),
        *map(str, vm_reasons.ZvirtMachineReason),
        *map(str, model.PlaceReason),
        str(model.ClusterReason.PROVISIONED),
        str(CommonReason.AMBIGUOUS),
        str(CommonReason.IMMUTABLE),
    },
}
NOT_IMPLEMENTED = {
    "docs/capdvp.md": ("In-place updates", "storage class"),
    "docs/capz.md": ("real core of Cluster API", "A chart"),
}


def rows(text: str) -> dict[str, tuple[str, ...]]:
    _, _, conditions = text.partition("## Conditions")
    return {
        cells[0].strip("`"): tuple(cells[1:])
        for line in conditions.splitlines()
        if line.startswith("| `")
        for cells in [[cell.strip() for cell in line.strip("| ").split(" | ")]]
    }


@pytest.mark.parametrize("page", REASONS)
def test_each_reason_has_meaning_and_remedy(page: str) -> None:
    documented, reasons = rows(pathlib.Path(page).read_text()), REASONS[page]
    for reason in sorted(reasons | documented.keys()):
        print(f"{reason:32} {documented.get(reason, ('MISSING',))[0]}")
    assert reasons - documented.keys() == set()
    assert documented.keys() - reasons == set()
    assert all(len(cells) == 2 and all(cells) for cells in documented.values())


@pytest.mark.parametrize("page", REASONS)
def test_the_page_names_what_is_not_implemented(page: str) -> None:
    _, _, rest = pathlib.Path(page).read_text().partition("## Not implemented")
    section = rest.partition("\n## ")[0]
    assert all(text in section for text in NOT_IMPLEMENTED[page])
