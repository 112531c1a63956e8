"""docs/reference/names.md lists every name that does not change after the release.

The names are collected from the code: enums, calls that create metrics, documents of
`--output json` and calls of loggers. A missing row and a surplus row both fail.
"""

import ast
import enum
import functools
import pathlib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping

import pytest

from lib.balancers import preview as balancers_preview
from lib.ccm import metrics as ccm_metrics
from lib.cloud import errors, load_balancers, routes, steps
from lib.cloud.openstack import reference_metrics
from lib.cloud.openstack.load_balancers.spec import reasons
from lib.cloud.openstack.routes import desire
from lib.discovery import model as discovery_model
from lib.doctor import model as doctor_model
from lib.helm import model as helm_model
from lib.nodes import preview as nodes_preview
from lib.osdpl import admission, snapshot, states
from lib.osdpl import metrics as osdpl_metrics
from lib.osdpl import model as osdpl_model
from lib.reconcile import metrics as reconcile_metrics
from lib.routes import preview as routes_preview
from mooring.commands import documents

PAGE = pathlib.Path("docs/reference/names.md")
SKIPPED = ("lib/lab/", "lib/csi/spec/")
"""The lab has no stable names; the rest is generated."""
CAMEL = re.compile(r"(?:[A-Z][a-z]+){2,}[A-Za-z]*|[A-Z][a-z]+(?:[A-Z]+[a-z]*)+|Synced")
METRICS = {"Counter", "Gauge", "Histogram", "GaugeMetricFamily", "_gauge"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "bind"}
EVENTS = {"_warning", "_event", "RecordEvent", "emit", "Notice"}
Names = frozenset[str]


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("lib", "cmd"):
        for path in sorted(pathlib.Path(folder).rglob("*.py")):
            name = path.as_posix()
            if not name.startswith(SKIPPED) and "/fake/" not in name:
                yield name, _parsed(name)


@functools.cache
def _parsed(name: str) -> ast.Module:
    return ast.parse(pathlib.Path(name).read_text())


def _calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield receiver, function and call of every call in lib and cmd."""
    for _, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                match node.func:
                    case ast.Attribute(value=value, attr=name):
                        yield ast.unparse(value), name, node
                    case ast.Name(id=name):
                        yield "", name, node


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _values(*enums: type[enum.Enum]) -> Names:
    return frozenset(str(member.value) for kind in enums for member in kind)


# ------------------------------------------------------------------ from the code


def event_reasons() -> Names:
    """Return reasons of problems, of errors of a cloud, and literals of Events."""
    enums = (
        steps.CommonReason,
        load_balancers.Reason,
        reasons.OctaviaReason,
        routes.Reason,
        desire.NeutronReason,
    )
    assert set(enums) == set(steps.ProblemReason.__subclasses__())
    literals = {
        text
        for _, name, call in _calls()
        if name in EVENTS
        for text in _texts(_arguments(call))
        if CAMEL.fullmatch(text)
    }
    return _values(*enums) | literals | set(_error_reasons()) | set(_event_names())


def _error_reasons() -> Iterator[str]:
    kinds = [errors.CloudError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        yield kind.reason


def _event_names() -> Iterator[str]:
    """Yield values of variables and arguments named event, and of lib/routes."""
    yield "FailedToCreateRoute"
    for _, tree in _trees():
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id="event")], value=value):
                    yield from filter(CAMEL.fullmatch, _texts([value]))
                case ast.keyword(arg="event", value=value):
                    yield from filter(CAMEL.fullmatch, _texts([value]))


def condition_reasons() -> Names:
    """Return reasons of the conditions of OpenStackDeployments and Nodes."""
    tree = _parsed("lib/osdpl/conditions.py")
    literals = {
        text
        for text in _texts(ast.walk(tree))
        if re.fullmatch(r"[A-Z][a-z]+([A-Z][a-z]+)*", text)
    }
    literals -= {"True", "False", "Warning", "Normal", "OpenStackDeploymentStatus"}
    (condition,) = (
        node
        for node in ast.walk(_parsed("lib/routes/model.py"))
        if isinstance(node, ast.ClassDef) and node.name == "SetCondition"
    )
    of_nodes = {text for text in _texts(ast.walk(condition)) if CAMEL.fullmatch(text)}
    return _values(snapshot.Refused, osdpl_model.Reason) | literals | of_nodes


def metrics() -> Names:
    """Return each metric as "name type {labels}"."""
    return frozenset(
        _metric(name, call)
        for _, name, call in _calls()
        if name in METRICS and _metric_name(call)
    )


def _metric_name(call: ast.Call) -> str:
    for node in call.args[:2]:
        if isinstance(node, ast.JoinedStr):
            return _expanded(ast.unparse(node))
        for text in _texts([node]):
            if re.fullmatch(r"[a-z_]+", text):
                return text
    return ""


def _expanded(text: str) -> str:
    text = text.replace("{names.calls}", reference_metrics.CALLS)
    return text.replace("{prefix}", reference_metrics.RECONCILIATIONS)[2:-1]


def _metric(function: str, call: ast.Call) -> str:
    name = _metric_name(call)
    kind = function.removesuffix("MetricFamily").lstrip("_").lower()
    if kind == "counter" and not name.endswith("_total"):
        name += "_total"
    labels = [
        text
        for node in _arguments(call)
        if isinstance(node, ast.Tuple)
        for text in _texts(node.elts)
    ]
    return f"{name} {kind} {{{','.join(labels)}}}"


def label_values() -> Names:
    """Return each value of a closed label of our own as "metric label value"."""
    admitted = {
        text
        for text in _texts(ast.walk(_parsed("lib/osdpl/webhook.py")))
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
    "Event reasons": event_reasons,
    "Condition reasons": condition_reasons,
    "Metrics": metrics,
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


def test_own_metrics_have_the_prefix() -> None:
    """Every other name is one of the reference's."""
    other = {name.split()[0] for name in metrics() if not name.startswith("mooring_")}
    reference = (
        "cloudprovider_openstack_",
        "openstack_api_",
        "service_controller_",
        "node_controller_",
        "leader_election_",
        "rest_client_",
        "running_managed_controllers",
        "kubernetes_healthcheck",
        "csi_plugin_operations_seconds",
        "cloud_data_discovery_",
    )
    print("\n".join(sorted(other)))
    assert {name for name in other if not name.startswith(reference)} == set()


def test_a_missing_and_a_surplus_row_are_noticed() -> None:
    text = "# Names\n\n## A\n\n| name | meaning |\n|---|---|\n| `x` | an x |\n\n## B\n"
    assert rows(text, "A") == {"x": "an x"}
    assert rows(text, "B") == {}
