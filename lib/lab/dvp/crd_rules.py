"""Rules in CEL of the definitions of a parent, in the lab's own words. Pure.

Source: deckhouse/virtualization crds/, commit cf3a9e6c: what each rule admits; texts
of expressions and messages are ours. A path names the field of the schema.
"""

from collections.abc import Mapping, Sequence

from lib.lab.dvp.kinds import Json


def _rule(expression: str, message: str) -> Json:
    return {"rule": expression, "message": message}


def _when(types: str, *, needs: str = "", without: Sequence[str] = ()) -> Json:
    """Return a rule on the members that some types, divided by blanks, admit."""
    listed = ", ".join(f"'{name}'" for name in types.split())
    held = [f"has(self.{needs})"] if needs else []
    held += [f"!has(self.{member})" for member in without]
    parts = [f"needs {needs}"] if needs else []
    parts += [f"has no {', '.join(without)}"] if without else []
    return _rule(
        f"!(self.type in [{listed}]) || ({' && '.join(held)})",
        f"type {types} {', and '.join(parts)}",
    )


_SOURCE = (
    _when("HTTP", needs="http", without=("containerImage", "objectRef", "upload")),
    _when(
        "ContainerImage",
        needs="containerImage",
        without=("http", "objectRef", "upload"),
    ),
    _when("ObjectRef", needs="objectRef", without=("http", "containerImage", "upload")),
    _when("Upload", without=("http", "containerImage", "objectRef")),
)
_NAMESPACE = "self.__namespace__"
_OF_NAMESPACE = (
    _rule(
        "self.kind == 'ClusterVirtualImage' ||"
        f" (has({_NAMESPACE}) && size({_NAMESPACE}) > 0)",
        "an object of a namespaced kind needs namespace",
    ),
    _rule(
        "self.kind == 'ClusterVirtualImage' ||"
        f" (has({_NAMESPACE}) && size({_NAMESPACE}) <= 63)",
        "namespace has 63 characters at most",
    ),
)
_PERCENT = "int(self.cpu.coreFraction.replace('%', ''))"
_MACHINE = (
    _rule(
        "!has(self.cpu.coreFraction) || self.cpu.coreFraction == 'Auto'"
        " || (self.cpu.coreFraction.endsWith('%')"
        f" && {_PERCENT} >= 1 && {_PERCENT} <= 100)",
        "coreFraction is Auto, or 1% to 100%",
    ),
    _rule(
        "!has(self.osType) || self.osType != 'Legacy' || !has(self.bootloader)"
        " || self.bootloader == 'BIOS'",
        "osType Legacy needs bootloader BIOS",
    ),
    _rule(
        "!has(self.osType) || self.osType != 'Legacy' || !has(self.provisioning)",
        "osType Legacy has no provisioning",
    ),
    _rule(
        "!has(self.osType) || self.osType != 'Legacy'"
        " || !has(self.enableParavirtualization) || self.enableParavirtualization"
        " || size(self.blockDeviceRefs) <= 4",
        "osType Legacy without paravirtualization has 4 block devices at most",
    ),
)
_CPU = (
    _rule("self == oldSelf", "cpu cannot be changed"),
    _when("Host HostPassthrough", without=("model", "features", "discovery")),
    _when("Discovery", without=("model", "features")),
    _when("Model", needs="model", without=("features", "discovery")),
    _when("Features", needs="features", without=("model", "discovery")),
)
_CORES = (
    _rule("self.max > self.min", "max must be greater than min"),
    _rule("!has(self.step) || self.max > self.step", "max must be greater than step"),
)
_DEFAULT_FRACTION = _rule(
    "type(self) == int ? (self >= 1 && self <= 100) : self == 'Auto'",
    "defaultCoreFraction is Auto, or a number from 1 to 100",
)
_OPERATION = (
    _rule("self == oldSelf", "an operation cannot be changed"),
    _rule(
        "self.type != 'Start' || !has(self.force) || !self.force",
        "Start cannot be forced",
    ),
    _when("Restore", needs="restore"),
    _when("Clone", needs="clone"),
    _rule("!has(self.migrate) || self.type == 'Migrate'", "migrate is of type Migrate"),
)


def _affix(name: str) -> Json:
    held = f"!has(self.{name}) || (size(self.{name}) >= 1 && size(self.{name}) <= 59)"
    return _rule(held, f"{name} has 1 to 59 characters")


_CLONE = {
    "spec.clone": (
        _rule(
            "(has(self.customization) && (has(self.customization.namePrefix)"
            " || has(self.customization.nameSuffix)))"
            " || (has(self.nameReplacement) && size(self.nameReplacement) > 0)",
            "a clone needs another name",
        ),
    ),
    "spec.clone.customization": (_affix("namePrefix"), _affix("nameSuffix")),
    "spec.clone.nameReplacement": (
        _rule(
            "self.all(row, has(row.to) && size(row.to) >= 1 && size(row.to) <= 59)",
            "to has 1 to 59 characters",
        ),
    ),
}
_POLICY = "spec.sizingPolicies.items"
RULES: Mapping[tuple[str, str], Mapping[str, Sequence[Json]]] = {
    ("virtualmachines", "v1alpha2"): {
        "spec": _MACHINE,
        "spec.provisioning.userData": (
            _rule("size(self) <= 2048", "userData has 2048 bytes at most"),
        ),
    },
    ("virtualdisks", "v1alpha2"): {"spec.dataSource": _SOURCE},
    ("virtualimages", "v1alpha2"): {"spec.dataSource": _SOURCE},
    ("clustervirtualimages", "v1alpha2"): {
        "spec.dataSource": _SOURCE,
        "spec.dataSource.objectRef": _OF_NAMESPACE,
    },
    ("virtualmachineclasses", "v1alpha2"): {
        "spec.cpu": _CPU,
        f"{_POLICY}.cores": _CORES,
        f"{_POLICY}.defaultCoreFraction": (_DEFAULT_FRACTION,),
    },
    ("virtualmachineclasses", "v1alpha3"): {
        "spec.cpu": _CPU,
        f"{_POLICY}.cores": _CORES,
    },
    ("virtualmachineoperations", "v1alpha2"): {"spec": _OPERATION, **_CLONE},
}
"""By plural and version: the rules of each field."""
