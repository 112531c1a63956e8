"""Judges imports by Pants' own code and our BUILD files. Runs on Pants' Python (3.9).

Standard input: JSON, a list of pairs of files: the one that imports, the imported one.
Standard output: JSON, for each pair "allow" or "deny", and the rule that says so.
"""

import importlib
import json
import pathlib
import sys
from typing import Any

# By name: our own environment, in which this file is checked, has no Pants.
addresses: Any = importlib.import_module("pants.engine.addresses")
adaptors: Any = importlib.import_module("pants.engine.internals.target_adaptor")
visibility: Any = importlib.import_module("pants.backend.visibility.rule_types")


def rules(file: str, dependents: bool = False) -> Any:
    """Read the rules of one BUILD file; other calls in it do nothing.

    dependents: those about its dependents, else about its dependencies.
    """
    create = visibility.BuildFileVisibilityRules.create_parser_state
    state, others = create(file, None), create(file, None)
    names = {
        "__dependencies_rules__": lambda *sets: state.set_dependency_rules(file, *sets),
        "__dependents_rules__": lambda *sets: others.set_dependency_rules(file, *sets),
        "files": lambda **fields: None,
        "python_requirements": lambda **fields: None,
        "python_sources": lambda **fields: None,
    }
    exec(pathlib.Path(file).read_text(), names)  # noqa: S102 -- a BUILD file is code
    return (others if dependents else state).get_frozen_dependency_rules()


def judge(importer: str, imported: str) -> tuple[str, str]:
    """Return what Pants does about one import, and by which rule."""
    sources = _adaptor("python_sources")
    package, _, requirement = imported.partition("#")
    if requirement:
        applied = visibility.BuildFileVisibilityRules.check_dependency_rules(
            origin_address=_address(importer),
            origin_adaptor=sources,
            dependencies_rules=None,
            dependency_address=addresses.Address(
                package, target_name="reqs", generated_name=requirement
            ),
            dependency_adaptor=_adaptor("python_requirement"),
            dependents_rules=rules(f"{package}/BUILD", dependents=True),
        )
        return applied.action.name.lower(), applied.rule_description
    applied = visibility.BuildFileVisibilityRules.check_dependency_rules(
        origin_address=_address(importer),
        origin_adaptor=sources,
        dependencies_rules=rules(importer.partition("/")[0] + "/BUILD"),
        dependency_address=_address(imported),
        dependency_adaptor=sources,
        dependents_rules=None,
    )
    return applied.action.name.lower(), applied.rule_description


def _adaptor(kind: str) -> Any:
    return adaptors.TargetAdaptor(kind, name=None, __description_of_origin__="")


def _address(path: str) -> Any:
    folder, _, name = path.rpartition("/")
    return addresses.Address(folder, relative_file_path=name)


if __name__ == "__main__":
    json.dump([judge(*pair) for pair in json.load(sys.stdin)], sys.stdout)
