"""The tables of docs/reference have a row for each row of the code, and no other.

`./pants run tests/reference/generate.py` writes them.
"""

import ast
import re

import pytest

from lib.ccm import flag_table
from lib.cloud.openstack.load_balancers.spec import annotations
from lib.process import shutdown
from mooring.commands import edge, orphans, reach
from tests.reference import (
    cloud_conf,
    environment,
    generate,
    measurements,
    reachable,
    requests,
    sheets,
)


def page(name: str) -> str:
    return (generate.FOLDER / name).read_text()


@pytest.mark.parametrize("name", generate.PAGES)
def test_each_page_is_current(name: str) -> None:
    """Prints page and rows."""
    text = page(name)
    print(f"{name}: {len(sheets.names(text))} rows")
    assert sheets.filled(text, generate.PAGES[name]()) == text, sheets.COMMAND


def test_a_table_without_a_place_is_noticed() -> None:
    text = "# A\n\n<!-- table: x -->\nold\n<!-- end -->\n"
    assert sheets.filled(text, {"x": "new\n"}).count("new") == 1
    for tables in ({}, {"y": ""}, {"x": "", "y": ""}):
        with pytest.raises(ValueError, match="page without"):
            sheets.filled(text, tables)


@pytest.mark.parametrize("section", cloud_conf.SECTIONS)
def test_each_key_that_is_read_has_a_row(section: str) -> None:
    """The reader knows exactly the keys with a text, each with a meaning."""
    rows = {name: text for name, _, _, text in cloud_conf.documented(section)}
    known = cloud_conf.read_keys(section)
    for key in sorted(known | rows.keys()):
        print(f"[{section}] {key}: {rows[key].meaning if key in rows else 'MISSING'}")
    assert known == rows.keys()
    assert all(text.meaning for text in rows.values())


def test_a_key_without_a_reader_has_no_effect() -> None:
    """Prints the keys that nothing uses: their rows state the reason."""
    used = cloud_conf.used_fields()
    idle = {
        (section, name)
        for section, name, field in cloud_conf.fields()
        if field not in used
    }
    stated = {
        (section, name)
        for section in cloud_conf.SECTIONS
        for name, _, _, text in cloud_conf.documented(section)
        if text.no_effect
    }
    print(f"without effect: {sorted(idle)}")
    assert idle == stated


def test_used_by_is_what_the_programs_read() -> None:
    """Prints key and programs; one without a mention of the field fails."""
    stated = {
        (section, name): text.used_by or cloud_conf.SECTIONS[section][1]
        for section in cloud_conf.SECTIONS
        for name, _, _, text in cloud_conf.documented(section)
        if not text.no_effect
    }
    compared, unused = 0, dict(cloud_conf.REACHED_ONLY)
    for section, key, field in cloud_conf.fields():
        if (section, key) not in stated:
            continue
        mentioned = set(cloud_conf.mentioned(section, field))
        print(f"[{section}] {key}: {sorted(mentioned)}")
        surplus = mentioned - set(stated[section, key])
        assert set(stated[section, key]) <= mentioned, key
        assert {(key, name) for name in surplus} <= cloud_conf.REACHED_ONLY.keys()
        for name in surplus:
            unused.pop((key, name), None)
        compared += 1
    assert unused == {}
    assert compared >= 60


def test_each_metric_has_a_component() -> None:
    """And each component metrics of its own."""
    rows = [(row[0], row[4].split(", ")) for row in measurements.metrics()]
    assert [name for name, components in rows if not all(components)] == []
    for component in reachable.PROGRAMS:
        count = sum(component in components for _, components in rows)
        print(f"{component}: {count} metrics")
        assert count >= 3


def test_each_annotation_has_a_row() -> None:
    """Those of the code, of which each has a text, in exactly one group."""
    names = [name for group in requests.GROUPS.values() for name in group.split()]
    constants = {constant.name for constant in sheets.constants(annotations)}
    assert sorted(names) == sorted(constants)
    values = {constant.value for constant in sheets.constants(annotations)}
    assert values == annotations.READ | annotations.WRITTEN
    assert values <= set(sheets.names(page("service-annotations.md")))


def test_each_parameter_that_is_read_has_a_row() -> None:
    read = requests.read_parameters()
    print(sorted(read))
    assert len(read) >= 5
    assert read <= set(sheets.names(page("storage-classes.md")))


def test_own_flags_are_listed() -> None:
    """In the introduction: they prevent the rollback of a command line."""
    introduction, _, _ = page("openstack-ccm-flags.md").partition("<!-- table")
    listed = re.findall(r"`--([a-z-]+)`", introduction.partition("does not know")[2])
    assert listed == [flag.name for flag in flag_table.OURS]


def test_own_metrics_have_the_prefix() -> None:
    """Every other name is one of the reference's."""
    names = {row[0].strip("`") for row in measurements.metrics()}
    other = {name for name in names if not name.startswith(measurements.OWN)}
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
        "d8_cloud_provider_dvp_",
    )
    print("\n".join(sorted(other)))
    assert {name for name in other if not name.startswith(reference)} == set()


def test_each_alert_is_at_a_metric() -> None:
    """But for those about `up`, which Prometheus creates."""
    shown = page("metrics.md")
    alerts = measurements.alerts_by_metric()
    names = {row[0].strip("`") for row in measurements.metrics()}
    used = {alert for name in names for alert in alerts.get(name, ())}
    unused = {alert for group in alerts.values() for alert in group} - used
    print(f"{len(used)} alerts; without a metric of ours: {sorted(unused)}")
    assert all(alert in shown for alert in used)
    assert len(used) >= 15


def test_each_environment_variable_has_a_row() -> None:
    """Prints variable and state; a missing and a surplus row fail."""
    rows = re.findall(r"^\| (`.+?`) \|", page("environment.md"), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    read = environment.variables()
    for name in sorted(read | documented):
        print(f"{name}: {'' if name in documented else 'MISSING'}")
    assert documented == read
    assert len(read) >= 25


def test_each_exit_code_has_a_row() -> None:
    """Those of the components, and those of mooring."""
    components, _, tool = page("exit-codes.md").partition("\n## mooring\n")
    listed = [int(code) for code in sheets.names(components)]
    assert listed == [int(code) for code in shutdown.Exit]
    codes = {0, edge.INTERRUPTED, reach.FAILED, reach.CHANGES, orphans.FOUND}
    assert {int(code) for code in sheets.names(tool)} == codes
    assert codes == tool_codes()


def tool_codes() -> frozenset[int]:
    """Return the numbers that commands pass to `sys.exit`, and those of constants."""
    numbers = {0, 2}  # click: success, and an invalid command line
    for path, tree in sheets.product().items():
        if not path.startswith("cmd/mooring/"):
            continue
        for receiver, function, call in sheets.calls(tree):
            if f"{receiver}.{function}" == "sys.exit":
                nodes = [node for arg in call.args for node in ast.walk(arg)]
                values = [n.value for n in nodes if isinstance(n, ast.Constant)]
                numbers |= {value for value in values if isinstance(value, int)}
    return frozenset(numbers | {edge.INTERRUPTED, orphans.FOUND})
