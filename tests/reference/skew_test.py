"""Chart and image one minor version apart work together, in either direction.

By the record of the former release (`skew.py`). Pods of both run in
tests/lab/pods/upgrade_pods_test.py.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lib.cloud import route_records
from lib.process import config, flags
from tests.reference import environment, programs, skew

FORMER = skew.read()
PRESENT = skew.present()
EXPANDED = re.compile(r"\$\(([A-Z_]+)\)")
"""A variable that the kubelet puts into a command line."""
OF_LIBRARIES = {
    name
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    for name in (variable, variable.lower())
}
"""Read by the HTTP libraries, in the image of every release."""
ROWS = [
    pytest.param(name, component, id=f"{name}-{component}")
    for name, snapshot in FORMER["snapshots"].items()
    for component in snapshot["containers"]
]


def of_both(name: str, component: str) -> Iterator[dict[str, Any]]:
    """Yield the container of the former chart, and that of the present one."""
    for snapshots in (FORMER["snapshots"], PRESENT):
        yield snapshots[name]["containers"][component]


def read_variables(container: dict[str, Any]) -> set[str]:
    """Return the variables of a container that the program itself reads."""
    expanded = set(EXPANDED.findall(" ".join(container["args"])))
    return set(container["variables"]) - expanded - OF_LIBRARIES


def test_the_record_has_each_snapshot_and_component() -> None:
    assert FORMER["snapshots"].keys() == PRESENT.keys()
    for name, snapshot in PRESENT.items():
        former = FORMER["snapshots"][name]["containers"]
        assert former.keys() == snapshot["containers"].keys()
    assert FORMER["flags"].keys() == set(skew.IMAGES)


@pytest.mark.parametrize(("name", "component"), ROWS)
def test_the_present_image_starts_with_the_former_chart(
    name: str, component: str
) -> None:
    """Arguments, variables, probes and folders are those that it knows and needs."""
    former, present = of_both(name, component)
    values = flags.parse(programs.FLAGS[component], former["args"])
    print(f"{len(former['args'])} arguments: accepted")
    assert values.without_effect() == ()
    assert read_variables(former) <= environment.variables()
    assert former["probes"] == present["probes"]
    assert set(present["folders"]) <= set(former["folders"])


@pytest.mark.parametrize(("name", "component"), ROWS)
def test_the_former_image_starts_with_the_present_chart(
    name: str, component: str
) -> None:
    _, present = of_both(name, component)
    used = {argument.partition("=")[0] for argument in present["args"]}
    print(f"{len(used)} flags of the present chart")
    assert used - set(FORMER["flags"][component]) == set()
    assert read_variables(present) - set(FORMER["variables"]) == set()


@pytest.mark.parametrize("name", PRESENT)
def test_the_present_image_has_its_rights_by_the_former_chart(name: str) -> None:
    """A new right must be one that the image can do without: prints what is new.

    Without the other parts the record of routes stays in one ConfigMap: see
    tests/lib/routes/flow_size_test.py.
    """
    present, former = set(PRESENT[name]["rights"]), FORMER["snapshots"][name]["rights"]
    parts = {
        f"configmaps mooring-routes-{number} {verb}"
        for number in range(1, route_records.PARTS)
        for verb in ("get", "patch")
    }
    added = sorted(present - set(former) - parts)
    print(f"{len(present)} rights, new: {added}")
    assert added == []


def test_a_flag_that_was_removed_is_noticed() -> None:
    args = FORMER["snapshots"]["defaults"]["containers"]["csi-node"]["args"]
    flag = args[0].partition("=")[0].removeprefix("--")
    fewer = [x for x in programs.FLAGS["csi-node"] if x.name != flag]
    with pytest.raises(config.ConfigError):
        flags.parse(tuple(fewer), args)
