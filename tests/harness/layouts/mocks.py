"""Plans of roots without a cloud: `tofu test`, with the real provider's schema.

Each case is a test file of its own, since a run that fails ends its file.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from lib.lab.layouts import tofu
from tests.harness.layouts import inputs

ZONES = ("az1", "az2", "az3")
_LISTS: Mapping[str, Mapping[str, Any]] = {
    "openstack_compute_availability_zones_v2": {"names": list(ZONES)},
    "openstack_blockstorage_availability_zones_v3": {"names": list(ZONES)},
    "openstack_images_image_ids_v2": {"ids": ["the-image"]},
    "openstack_networking_subnet_ids_v2": {"ids": ["the-subnet"]},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """Inputs of a root. data: what data sources return, by type, over the usual."""

    variables: Mapping[str, Any]
    data: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Planned:
    """The plan of a case, or the errors in place of it."""

    plan: Mapping[str, Any] | None = None
    errors: list[str] = dataclasses.field(default_factory=list)

    @property
    def created(self) -> Mapping[str, Mapping[str, Any]]:
        """Planned values of resources by address."""
        assert not self.errors, self.errors
        return {
            change["address"]: change["change"]["after"]
            for change in (self.plan or {})["resource_changes"]
            if change["mode"] == "managed" and change["change"]["after"]
        }

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Planned outputs of the root."""
        assert not self.errors, self.errors
        changes = (self.plan or {}).get("output_changes", {})
        return {name: change["after"] for name, change in changes.items()}

    def of_type(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the planned values of the resources of a type, by address."""
        values = self.created
        return [values[name] for name in sorted(values) if f"{kind}." in name]


def variables(document: inputs.Json, **extra: Any) -> Mapping[str, Any]:
    """Return the variables of a root of a cluster with the prefix "prod"."""
    return {
        "clusterConfiguration": inputs.cluster("prod"),
        "providerClusterConfiguration": document,
        "clusterUUID": inputs.UUID,
        **extra,
    }


def plan(
    program: tofu.Tofu, folder: pathlib.Path, cases: Mapping[str, Case]
) -> Mapping[str, Planned]:
    """Return the plan of each case, by its name. folder: an initialised root."""
    names = {f"mooring-{number}.tftest.json": name for number, name in enumerate(cases)}
    for file, name in names.items():
        (folder / file).write_text(json.dumps(_test(cases[name])))
    try:
        text = program.run(folder, "test", "-json", "-verbose").text
    finally:
        for file in names:
            (folder / file).unlink()
    planned = {name: Planned() for name in cases}
    for line in text.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        _note(event, planned.get(names.get(str(event.get("@testfile")), "")))
    return planned


def _note(event: inputs.Json, case: Planned | None) -> None:
    """Note what an event says of a case; None: it is no case's."""
    problem = event.get("diagnostic", {})
    is_error = problem.get("severity") == "error"
    if case is None:
        assert not is_error, problem
    elif "test_plan" in event:
        case.plan = event["test_plan"]
    elif is_error:
        case.errors.append(f"{problem['summary']}: {problem['detail']}")


def _test(case: Case) -> inputs.Json:
    data = {**_LISTS, **case.data}
    port = {"defaults": {"all_fixed_ips": ["192.168.199.7"]}}
    mocks = {
        "mock_data": [{kind: {"defaults": values}} for kind, values in data.items()],
        "mock_resource": [{"openstack_networking_port_v2": port}],
    }
    return {
        "mock_provider": {"openstack": mocks},
        "run": {"case": {"command": "plan", "variables": _literal(case.variables)}},
    }


def _literal(value: Any) -> Any:
    """Return a value in which no text is a template."""
    match value:
        case str():
            return value.replace("${", "$${").replace("%{", "%%{")
        case dict():
            return {name: _literal(item) for name, item in value.items()}
        case list():
            return [_literal(item) for item in value]
    return value
