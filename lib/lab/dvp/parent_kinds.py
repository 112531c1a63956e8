"""CustomResourceDefinitions of a parent cluster.

The files of crds/ repeat field by field what the platform's definitions state: names,
types, limits, defaults, required fields. Their texts are omitted, rules in CEL are
those of `crd_rules.py`. `tests/lib/lab/dvp/parent_kinds_test.py` compares them with the
facts about the real ones.
"""

import functools
import importlib.resources
from collections.abc import Mapping, Sequence

import yaml

from lib.lab.dvp import crd_rules, kinds
from lib.lab.dvp.kinds import Json

_PLURALS = (
    "virtualmachines",
    "virtualdisks",
    "virtualdisksnapshots",
    "virtualmachineblockdeviceattachments",
    "virtualimages",
    "clustervirtualimages",
    "virtualmachineclasses",
    "virtualmachineipaddresses",
    "virtualmachineipaddressleases",
    "virtualmachineoperations",
)
_COLUMNS = (
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


@functools.cache
def definitions() -> Sequence[Json]:
    """Return the definitions of all kinds of virtualization."""
    return tuple(_read(plural) for plural in _PLURALS)


def checked_service() -> Json:
    """Return the definition of ServiceWithHealthchecks."""
    return _read(kinds.CHECKED_SERVICES.plural)


def _read(plural: str) -> Json:
    folder = importlib.resources.files("lib.lab.dvp") / "crds"
    definition: Json = yaml.safe_load((folder / f"{plural}.yaml").read_text())
    for version in definition["spec"]["versions"]:
        version["additionalPrinterColumns"] = list(_COLUMNS)
        rules = crd_rules.RULES.get((plural, version["name"]), {})
        for path, of_field in rules.items():
            schema = field(version["schema"]["openAPIV3Schema"], path)
            schema["x-kubernetes-validations"] = list(of_field)
    return definition


def phases(plural: str) -> Sequence[str]:
    """Return all phases of a kind."""
    kinds_ = (
        each for each in definitions() if each["spec"]["names"]["plural"] == plural
    )
    schema = next(kinds_)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return tuple(field(schema, "status.phase")["enum"])


def field(schema: Json, path: str) -> Json:
    """Return the schema of a field, by its path such as spec.networks.items.name.

    Raises:
        KeyError: there is no such field.
    """
    below: Json = schema
    for name in path.split("."):
        properties: Mapping[str, Json] = below.get("properties", {})
        below = properties[name] if name in properties else below[name]
    return below
