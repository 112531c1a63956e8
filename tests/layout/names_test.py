"""One name has one meaning: of public classes, and of modules.

A name that several packages share on purpose is listed with its reason; a line of the
list that is no longer needed fails, too.
"""

import ast
import collections
import pathlib
from collections.abc import Iterator, Mapping

from tests.harness.structure import sources

OUTSIDE = ("lab", "osdpl", "helm", "operator_edge")
"""Packages of the lab and of the operator, which import no flow."""
LAB = ("lib/lab", "tests/harness", "cmd/mooring")
"""Packages that run labs: a world of their own, in which names are unique, too."""
GENERATED = "lib/csi/spec/"

ROLE = "the same role in each flow: docs/design.md, One pass"
TAXONOMY = "one taxonomy of errors for each side: cloud, Kubernetes, kernel"
PROTOCOL = "the same part in each protocol of a cloud"
NATIVE = "an object of OpenStack, decoded by each package as far as it reads it"
SERVICE = "a part of a Service, decoded by each flow as far as it reads it"
FORMATS = "the same part of the formats of each cloud"

CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("RecordEvent", "Row", "Snapshot", "Source", "Sources"), ROLE),
    **dict.fromkeys(("Dependencies", "Desired", "Topic"), ROLE),
    **dict.fromkeys(("AlreadyExists", "Busy", "Forbidden", "NotFound"), TAXONOMY),
    "Unavailable": TAXONOMY,
    **dict.fromkeys(("Depth", "Node", "Observed", "Owned", "Plan", "Reason"), PROTOCOL),
    **dict.fromkeys(("Facts", "NotOwned", "Problems", "Ref", "Results"), PROTOCOL),
    **dict.fromkeys(("Spec", "Target"), PROTOCOL),
    **dict.fromkeys(("ServiceLoadBalancer", "ServiceSpec", "ServiceStatus"), SERVICE),
    "DeleteVolume": "begin to delete a volume: for CSI, and for cleanup",
    "Ingress": "an entry of a Service's status: desired, and " + SERVICE,
    "LoadBalancer": "a section of cloud.conf, and " + NATIVE,
    **dict.fromkeys(
        (
            "ClusterFacts",
            "ConfigurationSources",
            "ModuleSettings",
            "NodeGroup",
            "ProviderSettings",
            "RenderedDocuments",
            "Schema",
        ),
        FORMATS,
    ),
    "Port": "the port of a Service, and " + NATIVE,
    "Quota": "a quota as a doctor sees it, and " + NATIVE,
    "Service": "Kubernetes' and OpenStack's own word",
    "Volume": "a volume in the vocabulary, and " + NATIVE,
}
MODULES: Mapping[str, str] = {
    **dict.fromkeys(("act", "decide", "flow", "model", "observe", "preview"), ROLE),
    **dict.fromkeys(
        (
            "capi",
            "checksums",
            "documents",
            "manifests",
            "node_groups",
            "registration",
            "render",
            "schemas",
            "sources",
            "templates",
            "unsafe_changes",
        ),
        FORMATS,
    ),
    "desired": ROLE,
    "errors": TAXONOMY,
    "actions": "the steps that a package of a provider plans",
    "addresses": "addresses of an instance: as read, and as a Node shows them",
    "checkup": "what a doctor is shown: the protocol, and those who implement it",
    "children": "listeners, pools, monitors and members: read, and explained",
    "client": "the client of an API: OpenStack's, Kubernetes'",
    "cloud": "the implementation of a protocol, in each package of a provider",
    "config": "how a configuration is reported, and that of each cloud",
    "kinds": "kinds of a flag's value, and of a parent's objects",
    "flag_table": "the flags of each daemon",
    "lists": "the lists that each package of a provider reads",
    "metrics": "the metrics of each daemon, of the runtime and of a process",
    "native": NATIVE,
    "options": "the options of each daemon",
    "plan": "the plans of a package of a provider",
    "protocol": "what a cloud, and a kernel, has to implement",
    "provider": "the protocol, and its implementation for OpenStack",
    "refusals": "what the words of a service's refusals mean",
    "translate": "from the words of one side to those of the other",
}

LAB_CLASSES: Mapping[str, str] = {
    "Ground": "what one suite of the harness runs on",
    "Kind": "what servers are made of, and a kind of step of a convergence test",
    "Row": "a row of a table that is printed",
    "Snapshot": "of a chart, and of simulated Pods",
    "Stage": "where the demo is shown, and where a Service's test plays",
}
SIMULATED = "the same part of each simulated cloud"
LAB_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("attachments", "disks", "kinds", "virtual_servers"), SIMULATED),
    **dict.fromkeys(("settings", "transitions"), SIMULATED),
    "grounds": "the protocol of a lab's cloud, and its implementation",
    "lab": "start and stop of a lab: OpenStack's, the operator's, the command",
    "pod_values": "values of the umbrella chart of each cloud",
    "testing": "slots and labs for tests, with OpenStack and without",
}


def modules() -> Iterator[pathlib.Path]:
    for path in sorted(pathlib.Path("lib").rglob("*.py")):
        is_fake = "fake" in path.parts
        is_ours = path.parts[1] not in OUTSIDE and not is_fake
        is_made = path.as_posix().startswith(GENERATED) or path.name == "__init__.py"
        if is_ours and not is_made:
            yield path


def modules_of_labs() -> Iterator[pathlib.Path]:
    for top in LAB:
        for path in sorted(pathlib.Path(top).rglob("*.py")):
            is_test = path.name.endswith("_test.py") or path.name == "conftest.py"
            if not is_test and path.name != "__init__.py" and "guest" not in path.parts:
                yield path


def repeated(names: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: paths for name, paths in names.items() if len(paths) > 1}


def classes(paths: list[pathlib.Path]) -> dict[str, list[str]]:
    places = collections.defaultdict[str, list[str]](list)
    for path in paths:
        for node in sources.tree(path.as_posix()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.as_posix())
    return places


def is_native(places: list[str]) -> bool:
    return all(place.endswith("/native.py") for place in places)


def judge(names: Mapping[str, list[str]], exempt: Mapping[str, str]) -> set[str]:
    """Print what is repeated; return what is not exempt, or exempt without need."""
    for name, places in sorted(names.items()):
        print(f"{name:16} {exempt.get(name, 'NOT EXEMPT')}: {', '.join(places)}")
    return set(names) ^ set(exempt)


def test_a_public_class_has_a_name_of_its_own() -> None:
    paths = list(modules())
    assert len(paths) > 200
    names = repeated(classes(paths))
    others = {name: at for name, at in names.items() if not is_native(at)}
    assert judge(others, CLASSES) == set()


def test_a_module_has_a_name_of_its_own() -> None:
    paths = collections.defaultdict[str, list[str]](list)
    for path in modules():
        paths[path.stem].append(path.as_posix())
    assert judge(repeated(paths), MODULES) == set()


def test_names_of_labs_are_unique_among_them() -> None:
    paths = list(modules_of_labs())
    assert len(paths) > 100
    assert judge(repeated(classes(paths)), LAB_CLASSES) == set()
    places = collections.defaultdict[str, list[str]](list)
    for path in paths:
        places[path.stem].append(path.as_posix())
    assert judge(repeated(places), LAB_MODULES) == set()


def test_a_repeated_class_is_noticed(tmp_path: pathlib.Path) -> None:
    paths = [tmp_path / "one.py", tmp_path / "two.py"]
    for path in paths:
        path.write_text("class Settings: ...\nclass _Own: ...\n")
    names = repeated(classes(paths))
    assert list(names) == ["Settings"]
    assert judge(names, {}) == {"Settings"}
    assert judge({}, {"Settings": "none"}) == {"Settings"}
