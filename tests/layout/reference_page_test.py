"""names.md and events.md list every name that does not change after the release.

The names are collected from the code: enums, calls that create metrics, documents of
`--output json` and calls of loggers. A missing row and a surplus row both fail.
"""

import ast
import enum
import pathlib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping

import pytest

from lib.balancers import preview as balancers_preview
from lib.ccm import metrics as ccm_metrics
from lib.cloud import errors, load_balancers, machines, routes, steps
from lib.cloud.dvp.load_balancers import desired_service
from lib.cloud.dvp.machines import machine_reasons
from lib.cloud.openstack.load_balancers.spec import reasons
from lib.cloud.openstack.routes import desire
from lib.cloud.zvirt.machines import vm_reasons
from lib.discovery import model as discovery_model
from lib.doctor import model as doctor_model
from lib.helm import model as helm_model
from lib.machines import preview as machines_preview
from lib.machines.clusters import model as clusters_model
from lib.nodes import preview as nodes_preview
from lib.osdpl.api import model as osdpl_model
from lib.osdpl.reconcile import metrics as osdpl_metrics
from lib.osdpl.reconcile import snapshot, states
from lib.osdpl.webhook import admission
from lib.reconcile import metrics as reconcile_metrics
from lib.routes import preview as routes_preview
from mooring.commands import documents
from tests.reference import sheets

PAGE = pathlib.Path("docs/reference/names.md")
EVENTS_PAGE = pathlib.Path("docs/reference/events.md")
CAMEL = re.compile(r"(?:[A-Z][a-z]+){2,}[A-Za-z]*|[A-Z][a-z]+(?:[A-Z]+[a-z]*)+|Synced")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "bind"}
EVENTS = {"_warning", "_event", "RecordEvent", "emit", "Notice"}
Names = frozenset[str]


def _calls() -> Iterator[tuple[str, str, ast.Call]]:
    for tree in sheets.product().values():
        yield from sheets.calls(tree)


def _values(*enums: type[enum.Enum]) -> Names:
    return frozenset(str(member.value) for kind in enums for member in kind)


# ------------------------------------------------------------------ from the code


STATES = {
    *(machines.Reason.WAITING_FOR_CLUSTER, machines.Reason.WAITING_FOR_BOOTSTRAP),
    *(machines.Reason.RUNNING, machines.Reason.NOT_READY, machines.Reason.STOPPED),
    *(machines.Reason.FAILED, machines.Reason.ERROR, machines.Reason.DELETING),
    *(machines.Reason.PAUSED, machines.Reason.NOT_PAUSED),
    machine_reasons.DvpMachineReason.PARTS_READY,
    machine_reasons.DvpMachineReason.SPEC_APPLIED,
    vm_reasons.ZvirtMachineReason.NO_ADDRESS,
    vm_reasons.ZvirtMachineReason.SPEC_APPLIED,
    clusters_model.PlaceReason.NOT_VERIFIED,
    clusters_model.ClusterReason.PROVISIONED,
    clusters_model.ClusterReason.WAITING_FOR_MACHINES,
    clusters_model.ClusterReason.CLEANING_UP,
    clusters_model.ClusterReason.OTHER_FINALIZERS,
    clusters_model.PlaceReason.NOT_VERIFIED,
}
"""Reasons of conditions of machines and clusters that are no Events: docs/capdvp.md,
docs/capz.md."""


def event_reasons() -> Names:
    """Return reasons of problems, of errors of a cloud, and literals of Events."""
    enums = (
        steps.CommonReason,
        load_balancers.Reason,
        reasons.OctaviaReason,
        desired_service.DvpReason,
        routes.Reason,
        desire.NeutronReason,
        machines.Reason,
        machine_reasons.DvpMachineReason,
        vm_reasons.ZvirtMachineReason,
        clusters_model.ClusterReason,
        clusters_model.PlaceReason,
    )
    assert set(enums) == set(steps.ProblemReason.__subclasses__())
    literals = {
        text
        for _, name, call in _calls()
        if name in EVENTS
        for text in sheets.texts(sheets.arguments(call))
        if CAMEL.fullmatch(text)
    }
    values = _values(*enums) - set(map(str, STATES))
    return values | literals | set(_error_reasons()) | set(_event_names())


def _error_reasons() -> Iterator[str]:
    kinds = [errors.CloudError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        yield kind.reason


def _event_names() -> Iterator[str]:
    """Yield values of variables and arguments named event, and of lib/routes."""
    yield "FailedToCreateRoute"
    for tree in sheets.product().values():
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id="event")], value=value):
                    yield from filter(CAMEL.fullmatch, sheets.texts([value]))
                case ast.keyword(arg="event", value=value):
                    yield from filter(CAMEL.fullmatch, sheets.texts([value]))


def condition_reasons() -> Names:
    """Return reasons of the conditions of OpenStackDeployments and Nodes."""
    tree = sheets.parsed("lib/osdpl/reconcile/conditions.py")
    literals = {
        text
        for text in sheets.texts(ast.walk(tree))
        if re.fullmatch(r"[A-Z][a-z]+([A-Z][a-z]+)*", text)
    }
    literals -= {"True", "False", "Warning", "Normal", "OpenStackDeploymentStatus"}
    (condition,) = (
        node
        for node in ast.walk(sheets.parsed("lib/routes/model.py"))
        if isinstance(node, ast.ClassDef) and node.name == "SetCondition"
    )
    of_nodes = {
        text for text in sheets.texts(ast.walk(condition)) if CAMEL.fullmatch(text)
    }
    return _values(snapshot.Refused, osdpl_model.Reason) | literals | of_nodes


def label_values() -> Names:
    """Return each value of a closed label of our own as "metric label value"."""
    admitted = {
        text
        for text in sheets.texts(
            ast.walk(sheets.parsed("lib/osdpl/webhook/webhook.py"))
        )
        if text in ("invalid", "denied", "allowed")
    }
    results = {osdpl_metrics.SUCCESS, osdpl_metrics.UNEXPECTED}
    observed = frozenset(ccm_metrics._RESULTS.values())  # the table
    table: Mapping[str, Iterable[str]] = {
        "mooring_reconcile_total outcome": _values(reconcile_metrics.Result),
        "mooring_instance_observations_total result": observed,
        "mooring_discovery_step_error step": _values(discovery_model.DiscoveryStep),
        "mooring_osdpl_helm_runs_total result": {
            *osdpl_metrics.RESULTS.values(),
            *results,
        },
        "mooring_osdpl_releases status": _values(helm_model.Status),
        "mooring_osdpl_admission_reviews_total operation": _values(admission.Operation),
        "mooring_osdpl_admission_reviews_total result": admitted,
    }
    return frozenset(f"{key} {value}" for key in table for value in table[key])


def json_keys() -> Names:
    """Return each key as "command: path", such as `actions[].node`."""
    return frozenset(
        f"{command}: {path}"
        for command, kind in documents.DOCUMENTS.items()
        for path in _paths(kind)
    )


def _paths(kind: type) -> Iterator[str]:
    for key, value in typing.get_type_hints(kind).items():
        items = typing.get_args(value) if typing.get_origin(value) is list else ()
        yield f"{key}[]" if items else key
        for item in items:
            if typing.is_typeddict(item):
                yield from (f"{key}[].{path}" for path in _paths(item))


def states_shown() -> Names:
    """Return each state and action as "command: key: value"."""
    table: Mapping[str, type[enum.Enum]] = {
        "mooring plan nodes: action": nodes_preview.NodeAction,
        "mooring plan services: state": balancers_preview.State,
        "mooring plan services: action": steps.Verb,
        "mooring plan machines: state": machines_preview.MachinePlanState,
        "mooring plan machines: action": steps.Verb,
        "mooring plan routes: action": routes_preview.RouteAction,
        "mooring plan osdpl: state": states.State,
        "mooring plan osdpl: action": states.Step,
        "mooring doctor: state": doctor_model.CheckState,
    }
    return frozenset(
        f"{key}: {value}" for key, kind in table.items() for value in _values(kind)
    )


def log_keys() -> Names:
    """Return the keyword arguments of calls of loggers, as JSON entries name them."""
    return frozenset(
        {"error": "err", "exc_info": "stacktrace"}.get(keyword.arg, keyword.arg)
        for receiver, name, call in _calls()
        if name in LEVELS and "log" in receiver.lower()
        for keyword in call.keywords
        if keyword.arg is not None
    )


# ------------------------------------------------------------------ from the page

SECTIONS = {
    "Condition reasons": condition_reasons,
    "Label values": label_values,
    "JSON keys": json_keys,
    "States and actions": states_shown,
    "Log keys": log_keys,
}


def rows(text: str, section: str) -> dict[str, str]:
    """Return name and meaning of each row of a section's table."""
    _, _, rest = text.partition(f"\n## {section}\n")
    meanings: dict[str, str] = {}
    for line in rest.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            name = " ".join(cell.strip("`") for cell in cells[:-1])
            assert name not in meanings, f"{name}: two rows"
            meanings[name] = cells[-1]
    return meanings


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_each_name_and_no_other(section: str) -> None:
    """Prints the table; a missing, surplus or empty row fails."""
    documented = rows(PAGE.read_text(), section)
    names = SECTIONS[section]()
    for name in sorted(names | documented.keys()):
        state = "MISSING" if name not in documented else ""
        state = "SURPLUS" if name not in names else state
        print(f"{state:8} {name}: {documented.get(name, '')}")
    assert len(names) >= 10
    assert names - documented.keys() == set(), "missing in docs/reference/names.md"
    assert documented.keys() - names == set(), "not in the code"
    assert all(documented.values())


def test_each_event_has_a_row_and_no_other() -> None:
    """Prints the table; type, object, component, meaning and remedy are not empty."""
    documented = event_rows(EVENTS_PAGE.read_text())
    names = event_reasons()
    for name in sorted(names | documented.keys()):
        print(f"{name}: {' | '.join(documented.get(name, ('MISSING',)))}")
    assert names == documented.keys()
    assert len(names) >= 60
    for name, cells in documented.items():
        assert len(cells) == 5, name
        assert all(cells), name
        assert cells[0] in ("Normal", "Warning"), name


def event_rows(text: str) -> dict[str, tuple[str, ...]]:
    """Return the cells behind each reason of the page of Events."""
    by_reason: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            name, *cells = (cell.strip() for cell in line.strip("| ").split(" | "))
            assert name not in by_reason, f"{name}: two rows"
            by_reason[name.strip("`")] = tuple(cells)
    return by_reason


def test_a_missing_and_a_surplus_row_are_noticed() -> None:
    text = "# Names\n\n## A\n\n| name | meaning |\n|---|---|\n| `x` | an x |\n\n## B\n"
    assert rows(text, "A") == {"x": "an x"}
    assert rows(text, "B") == {}
