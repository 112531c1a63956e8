"""Each case of bad input on DVP is tested where its message is shown: the table.

A surface is where an operator meets the problem. Cases are those of docs/dvp.md; a row
names the test and, where the test is a table itself, its row.
"""

import ast
import pathlib
from collections.abc import Mapping, Sequence

import pytest

from tests.harness.structure import sources

START, NODE, SERVICE, CSI, CATALOG = "start", "Node", "Service", "CSI", "discovery"
PARTS = {
    "start": "tests/cmd/dvp_ccm/parent_input_test.py",
    "nodes": "tests/lib/cloud/dvp/instances_bad_input_test.py",
    "service": "tests/lib/cloud/dvp/load_balancers/service_plan_test.py",
    "volumes": "tests/lib/cloud/dvp/volumes/volumes_test.py",
    "refused": "tests/lib/cloud/dvp/volumes/volumes_bad_input_test.py",
    "catalog": "tests/lib/cloud/dvp/catalog/cloud_test.py",
    "lab volumes": "tests/lab/dvp/dvp_volumes_test.py",
    "lab Services": "tests/lab/dvp/dvp_services_test.py",
}
STARTS = "test_a_start_ends_with_one_message"
NODES = "test_each_case_is_one_message_and_no_hot_loop"
VOLUMES = "test_each_case_is_one_code_and_no_hot_loop"
REFUSALS = "test_a_refusal_names_object_and_reason"
FIELDS = "test_a_request_with_invalid_fields_names_them"
SERVICES = "test_what_the_parent_refuses_is_unknown_and_named"
FATAL = "test_what_cannot_be_served_is_a_fatal_problem"
PART_UNKNOWN = "test_a_part_without_permission_is_unknown_alone"
Row = tuple[str, str, str, str]
"""Surface, file, test, row of its table; empty: it has none."""

CASES: Mapping[str, Sequence[Row]] = {
    "kubeconfig missing": [(START, "start", STARTS, "kubeconfig missing")],
    "kubeconfig malformed": [
        (START, "start", STARTS, "kubeconfig malformed, variable"),
        (START, "start", STARTS, "kubeconfig malformed, file"),
    ],
    "kubeconfig not base64": [(START, "start", STARTS, "kubeconfig not base64")],
    "kubeconfig expired": [
        (NODE, "nodes", NODES, "expired token"),
        (SERVICE, "service", SERVICES, "expired token"),
        (CSI, "refused", VOLUMES, "expired token"),
    ],
    "kubeconfig for another project": [
        (NODE, "nodes", NODES, "kubeconfig of another project"),
        (SERVICE, "service", SERVICES, "kubeconfig of another project"),
        (CSI, "refused", VOLUMES, "kubeconfig of another project"),
        (CATALOG, "catalog", PART_UNKNOWN, ""),
    ],
    "namespace missing": [
        (START, "start", STARTS, "namespace missing"),
        (CSI, "refused", VOLUMES, "namespace missing"),
    ],
    "API group missing": [
        (NODE, "nodes", NODES, "API group missing"),
        (SERVICE, "service", SERVICES, "API group missing"),
        (CSI, "refused", VOLUMES, "API group missing"),
    ],
    "class missing": [
        (
            SERVICE,
            "service",
            "test_an_address_that_does_not_come_is_reported_after_five_minutes",
            "",
        )
    ],
    "class unusable": [
        (SERVICE, "service", FATAL, "class"),
        (SERVICE, "lab Services", "check_refusals", "class"),
    ],
    "image": [(CSI, "volumes", FIELDS, "source")],
    "storage class missing": [
        (CSI, "lab volumes", "test_what_the_parent_refuses_is_named", ""),
        (CSI, "volumes", REFUSALS, "storage class"),
    ],
    "storage class unusable": [(CSI, "volumes", FIELDS, "malformed")],
    "quota": [
        (CSI, "volumes", REFUSALS, "quota"),
        (CSI, "refused", VOLUMES, "quota of the project"),
    ],
    "unknown parameter": [
        (CSI, "volumes", FIELDS, "unknown"),
        (CSI, "lab volumes", "test_what_the_parent_refuses_is_named", ""),
    ],
    "unknown access mode": [(CSI, "volumes", FIELDS, "several nodes")],
    "two VMs with one hostname": [
        (NODE, "nodes", NODES, "two VMs with one hostname"),
        (
            SERVICE,
            "service",
            "test_two_vms_with_one_hostname_are_told_apart_by_the_provider_id",
            "",
        ),
        (CSI, "volumes", REFUSALS, "two VMs with one host name"),
    ],
    "VM without address": [
        (NODE, "nodes", NODES, "VM without address"),
        (NODE, "nodes", "test_a_vm_without_an_address_sets_none", ""),
    ],
    "16 disks reached": [(CSI, "volumes", REFUSALS, "16 devices")],
    "admission of the parent drops fields of a Service, or labels of a VM": [
        (
            SERVICE,
            "service",
            "test_what_the_parent_does_not_keep_is_reported_and_written_rarely",
            "",
        ),
    ],
    "objects that lack a field": [
        (NODE, "nodes", NODES, "VM without status"),
        (NODE, "nodes", NODES, "VM without labels"),
        (CSI, "volumes", "test_objects_without_fields_are_read", ""),
    ],
    "unknown phase": [
        (NODE, "nodes", NODES, "unknown phase"),
        (CSI, "volumes", "test_every_phase_of_a_disk_has_a_meaning", ""),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_tested(case: str) -> None:
    """The test exists, and has the row."""
    assert CASES[case], "no test"
    for surface, part, name, row in CASES[case]:
        path = pathlib.Path(PARTS[part])
        tree = sources.tree(PARTS[part])
        functions = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
        }
        texts = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        print(f"{case:30} {surface:9} {path.name} {name} {row}")
        assert name in functions, (case, name)
        assert not row or row in texts, (case, row)


def test_the_cases_are_those_of_the_documentation() -> None:
    """docs/dvp.md lists them for operators; in both directions."""
    text = pathlib.Path("docs/dvp.md").read_text()
    section = text.partition("## Bad input")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    listed = [row.split(" | ")[0][2:] for row in rows[1:]]
    assert listed == list(CASES)
