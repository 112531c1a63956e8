"""Each test of the lab is in a batch with a budget, and has a row in docs/proofs.md."""

import pathlib
import re
from types import ModuleType

ROOT = pathlib.Path()
LONGEST_S = {"default": 240, "long": 480}
ROW = re.compile(r"^\| `(tests/[^`]+)` \| (default|long) \| \d+ \| \S.* \|$")
CSI = (
    *("bench:node_plugin", "bench:volumes"),
    *("lab/csi:", "lab/guest:", "lab/kubelet:", "lab/node:"),
    *("lab/dvp:adoption-long", "lab/dvp:answers-long", "lab/dvp:kubelet-long"),
    *("lab/dvp:outages-long", "lab/dvp:sanity-long"),
    *("lab/dvp:sidecars-long", "lab/dvp:volumes"),
    *("lab/zvirt:sanity-long", "lab/zvirt:sidecars-long"),
    "lab/images:image",  # of csi-node
)
"""Batches of csi-controller and of csi-node, which share lib/csi."""
TOOL = (
    "lab/dvp:account",
    "lab/dvp:nodes-long",
    "lab/dvp:services",
    "lab/machines:chart-doctor-long",
    "lab/machines:tool-long",
    "lab/osdpl:",
    "lab/tool:",
)
"""Batches that run commands of the tool."""
UMBRELLAS = (
    "lab/charts:alerts",
    "lab/charts:deckhouse-names-long",
    "lab/charts:dvp-umbrella-long",
    "lab/charts:helm3-long",
    "lab/charts:umbrella",
    "lab/tool:migrate",
)
"""Batches of the umbrella charts, which contain the charts of components."""
PACKAGED = (
    "bench:tool_start",  # one second
    "lab/dvp:lab-long",
    "lab/images:all-long",
    "lab/pods:",
    "lab/kubelet:demo-long",
    "lab/layouts:handover-long",
    "lab/layouts:killed-long",  # the tool's commands
    "lab/layouts:recovered-long",
    "lab/osdpl:demo-long",
    "lab/osdpl:page-long",
    "lab/charts:dvp-page-long",
    "lab/services:pages-long",
    "lab/services:restore-long",
    "lab/tool:commands-long",
    "lab/tool:deployed-long",
    "lab/tool:shells-long",
    "lab/zvirt:lab-long",
)
"""They run the tool as it is packaged, or all programs."""
OWN = {
    "lib/discoverer": (
        "bench:discovery",
        "bench:zvirt_memory",
        "lab/discovery:",
        "lab/dvp:discoverer",
    ),
    "lib/discovery": (
        "bench:discovery",
        "bench:zvirt_memory",
        "lab/discovery:",
        "lab/dvp:account",
        "lab/dvp:discoverer",
        "lab/layouts:applied",  # data of layouts against their schema
    ),
    "lib/discovery/dvp": ("lab/discovery:kinds", "lab/dvp:account"),
    "lib/discovery/openstack": (
        "bench:discovery",
        "bench:zvirt_memory",
        "lab/discovery:",
        "lab/dvp:discoverer",
        "lab/layouts:applied",
    ),
    "lib/volumes": CSI,
    "lib/csi": CSI,
    # lib/osdpl has checks of its own for the doctor.
    "lib/doctor": ("bench:osdpl_values", *TOOL),
    "cmd/mooring/commands": TOOL,
    "charts/csi-controller": (*CSI, *UMBRELLAS, "lab/charts:csi"),
    "charts/cloud-data-discoverer": (
        *UMBRELLAS,
        "bench:discovery",
        "bench:zvirt_memory",
        "lab/charts:discoverer",
        "lab/discovery:",
        "lab/dvp:discoverer",
    ),
    "charts/osdpl-controller": (
        "bench:osdpl_values",
        "lab/charts:alerts",
        "lab/charts:osdpl",
        *TOOL,
    ),
    "lib/cloud/openstack/fake": (
        "bench:balancers",
        "bench:limits_",
        "bench:octavia",
        "bench:orphans",
        "bench:routes",
        "lab/services:",
    ),
}
"""Rooms of one component, and whose batches their changes may rerun."""


def test_every_file_has_a_row_for_each_of_its_tiers(tiers: ModuleType) -> None:
    expected = {
        (file, batch.tier) for batch in tiers.batches(ROOT) for file in batch.files
    }
    lines = (ROOT / "docs/proofs.md").read_text().splitlines()
    rows = [matched.groups() for line in lines if (matched := ROW.match(line))]
    assert len(rows) == len(set(rows))
    assert set(rows) == expected


def test_every_file_is_in_a_batch(tiers: ModuleType) -> None:
    present = {
        path.as_posix()
        for part in tiers.PARTS
        for path in pathlib.Path(part).rglob("*_test.py")
    }
    listed = {file for batch in tiers.batches(ROOT) for file in batch.files}
    assert present == {file for file in listed if file.startswith(tiers.PARTS)}
    assert len(present) > 40


def test_every_batch_has_a_budget_within_its_tiers_bound(tiers: ModuleType) -> None:
    expected: dict[str, dict[str, int]] = {"default": {}, "long": {}}
    for batch in tiers.batches(ROOT):
        expected[batch.tier][batch.address] = batch.budget_s
        print(f"{batch.address:40} {batch.tier:8} {batch.budget_s} s")
        assert batch.budget_s <= LONGEST_S[batch.tier], batch.address
    assert tiers.budgets(ROOT) == expected


def test_a_change_of_one_component_reruns_no_batch_of_another(
    tiers: ModuleType,
) -> None:
    """CI compares these rows with what Pants says."""
    rows = tiers.rows((ROOT / "docs/proofs.md").read_text())
    for room, allowed in OWN.items():
        own = (*allowed, *PACKAGED)
        others = [name for name in rows[room] if not name.startswith(own)]
        print(f"{room:32} {', '.join(rows[room])}")
        assert rows[room]
        assert others == [], room
