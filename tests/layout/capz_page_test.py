"""docs/capz.md has meaning and remedy of each reason of a condition, and no other."""

import pathlib

from lib.cloud import machines
from lib.cloud.steps import CommonReason
from lib.cloud.zvirt.machines import vm_reasons
from lib.machines.clusters import model
from tests.layout.capdvp_page_test import rows

PAGE = pathlib.Path("docs/capz.md")
REASONS = {
    *map(str, machines.Reason),
    *map(str, vm_reasons.ZvirtMachineReason),
    *map(str, model.PlaceReason),
    str(model.ClusterReason.PROVISIONED),
    str(CommonReason.IMMUTABLE),
    str(CommonReason.AMBIGUOUS),
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
    assert "real core of Cluster API" in rest
