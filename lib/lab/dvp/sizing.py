"""Which sizes of VMs a class admits, as the parent judges them. Pure.

Source: deckhouse/virtualization pkg/controller/service/size_policy_service.go and
pkg/common/sizing_policy.
"""

from collections.abc import Sequence

from lib.lab.dvp import quantities
from lib.lab.dvp.kinds import Json


def refusal(name: str, policies: Sequence[Json], spec: Json) -> str:
    """Return why a class does not admit the spec of a VM; empty: it does."""
    if not policies:
        return ""
    cores = int(spec["cpu"]["cores"])
    policy = next((each for each in policies if _matches(each, cores)), None)
    if policy is None:
        return f"does not match any sizing policy of VirtualMachineClass {name!r}"
    size = quantities.parse(spec["memory"]["size"])
    memory = policy.get("memory") or {}
    reason = (
        _fraction(policy, str(spec["cpu"].get("coreFraction") or "100%"))
        or _cores(policy["cores"], cores)
        or _amount("memory", memory, memory.get("step"), size)
        or _amount(
            "memory for each core",
            memory.get("perCore") or {},
            memory.get("step"),
            size // cores,
        )
    )
    known = f"does not match the sizing policy of VirtualMachineClass {name!r}: "
    return known + reason if reason else ""


def _matches(policy: Json, cores: int) -> bool:
    """Report whether the range of a policy contains a number of cores."""
    limits = policy.get("cores") or {"min": 1, "max": 0}
    return bool(limits["min"] <= cores <= limits["max"])


def _fraction(policy: Json, fraction: str) -> str:
    allowed = policy.get("coreFractions") or ()
    listed = {f"{str(each).removesuffix('%')}%" for each in allowed}
    if fraction == "Auto" or not listed or fraction in listed:
        return ""
    return f"core fraction {fraction} is none of {', '.join(sorted(listed))}"


def _cores(limits: Json, cores: int) -> str:
    step = limits.get("step") or 0
    if step <= 0 or cores in _grid(limits["min"], limits["max"], step):
        return ""
    return f"{cores} cores do not match the step {step}"


def _grid(least: int, most: int, step: int) -> Sequence[int]:
    """Return the admitted numbers: the greatest always belongs to them."""
    return (*range(least, most, step), most)


def _amount(what: str, limits: Json, step: object, size: int) -> str:
    """Judge bytes: a step is judged only where there is a greatest amount."""
    least = quantities.parse(limits.get("min") or 0)
    most = quantities.parse(limits.get("max") or 0)
    if size < least or (most and size > most):
        return f"{what} is out of the range"
    width = quantities.parse(step or 0)
    is_off = (size - least) % width if width else 0
    return (
        f"{what} does not match the step {step}"
        if most and is_off and (size != most)
        else ""
    )
