"""What `mooring doctor --cloud=dvp` reports of zones on the command line of capdvp."""

import pytest

from mooring.commands import chart_of_dvp, providers

CHART = chart_of_dvp.expected(providers.of("dvp"))
EXPECTED = (
    "values of the label topology.kubernetes.io/zone of hosts of the parent"
    " (global.zones)"
)
DEFAULT = '"default" is the name for a parent without zones'
ROWS = {
    "none": ((), f"not set: must be {EXPECTED}: VMs are placed on any host"),
    "empty": (
        ("--zones=",),
        f"not set: must be {EXPECTED}: VMs are placed on any host",
    ),
    "default": (
        ("--zones=a,default",),
        f'invalid value "a,default": must be {EXPECTED}: {DEFAULT}',
    ),
    "zones of the parent": (("--zones=a,b",), ""),
}


@pytest.mark.parametrize("row", ROWS)
def test_zones_that_constrain_nothing_are_named(row: str) -> None:
    words, expected = ROWS[row]
    problems = list(map(str, CHART.flags("capdvp", words)))
    print(f"{row:20} {problems}")
    assert problems == ([f"--zones: {expected}"] if expected else [])


def test_other_components_have_no_zones() -> None:
    assert list(CHART.flags("dvp-ccm", ())) == []
