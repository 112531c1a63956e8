"""Tables of metrics: the calls that create them, and the alerts that use them."""

import ast
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence

import yaml

from lib.cloud.openstack import reference_metrics
from tests.reference import reachable, sheets

CREATORS = frozenset({"Counter", "Gauge", "Histogram", "GaugeMetricFamily", "_gauge"})
ALERTS = "charts/*/files/alerts.yaml"
HEADS = ("name", "type", "labels", "meaning", "components", "alerts")
OWN = "mooring_"


def tables() -> sheets.Tables:
    """Return our own metrics, and those of the references."""
    rows = sorted(set(metrics()))
    own = [row for row in rows if row[0].strip("`").startswith(OWN)]
    return {
        "own": sheets.table(HEADS, own),
        "reference": sheets.table(HEADS, [row for row in rows if row not in own]),
    }


def metrics() -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric that the programs create."""
    alerts = alerts_by_metric()
    for path, tree in sheets.product().items():
        for statement in tree.body:
            for _, function, call in sheets.calls(statement):
                name = _name(call) if function in CREATORS else ""
                if name:
                    kind = function.removesuffix("MetricFamily").lstrip("_").lower()
                    users = components(path, statement)
                    yield _row(name, kind, call, users, alerts)


def _row(
    name: str,
    kind: str,
    call: ast.Call,
    users: Sequence[str],
    alerts: Mapping[str, tuple[str, ...]],
) -> tuple[str, ...]:
    if kind == "counter" and not name.endswith("_total"):
        name += "_total"
    return (
        sheets.code(name),
        kind,
        ", ".join(map(sheets.code, _labels(call))),
        _help(call),
        ", ".join(users),
        ", ".join(alerts.get(name, ())),
    )


def components(path: str, statement: ast.stmt) -> tuple[str, ...]:
    """Return the components that refer to the class or function of a statement."""
    module = reachable.name(path)
    definition = getattr(statement, "name", "")
    return tuple(
        component
        for component in reachable.PROGRAMS
        if (module, definition) in reachable.of(component)
    )


def _name(call: ast.Call) -> str:
    for node in call.args[:2]:
        if isinstance(node, ast.JoinedStr):
            text = ast.unparse(node)[2:-1]
            text = text.replace("{names.calls}", reference_metrics.CALLS)
            return text.replace("{prefix}", reference_metrics.RECONCILIATIONS)
        for text in sheets.texts([node]):
            if re.fullmatch(r"[a-z][a-z0-9_]+", text):
                return text
    return ""


def _help(call: ast.Call) -> str:
    """Return the help text: the text that follows the name."""
    candidates = [text for text in sheets.texts(sheets.arguments(call)) if " " in text]
    assert candidates, f"line {call.lineno}: a metric without a help text"
    return candidates[0]


def _labels(call: ast.Call) -> tuple[str, ...]:
    return tuple(
        text
        for node in sheets.arguments(call)
        if isinstance(node, ast.Tuple)
        for text in sheets.texts(iter(node.elts))
    )


def alerts_by_metric() -> Mapping[str, tuple[str, ...]]:
    """Return the alerts whose expression has a metric, by its name."""
    used: dict[str, set[str]] = {}
    for path in sorted(pathlib.Path().glob(ALERTS)):
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                for name in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z]+)+\b", rule["expr"]):
                    used.setdefault(name, set()).add(rule["alert"])
    return {name: tuple(sorted(alerts)) for name, alerts in used.items()}
