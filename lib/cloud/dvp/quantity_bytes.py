"""Quantities of Kubernetes as numbers of bytes: pure.

Source: k8s.io/apimachinery pkg/api/resource (quantity.go).
"""

import decimal
import re

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:[eE](?P<exponent>[+-]?\d{1,2})|(?P<suffix>"
    r"[numkMGTPE]|[KMGTPE]i))?"
)
_FACTORS: dict[str, decimal.Decimal] = {
    **{unit: decimal.Decimal(1000) ** n for n, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": decimal.Decimal(1024) ** n for n, unit in enumerate("KMGTPE", 1)},
    "m": decimal.Decimal("1e-3"),
    "u": decimal.Decimal("1e-6"),
    "n": decimal.Decimal("1e-9"),
    "": decimal.Decimal(1),
}


def size_bytes(quantity: str | int | None) -> int:
    """Return the bytes of a quantity, rounded up; 0 for an empty or malformed one."""
    if isinstance(quantity, int):
        return max(quantity, 0)
    matched = _QUANTITY.fullmatch((quantity or "").strip())
    if matched is None:
        return 0
    factor = _FACTORS[matched["suffix"] or ""]
    exponent = decimal.Decimal(10) ** int(matched["exponent"] or 0)
    value = decimal.Decimal(matched["number"]) * factor * exponent
    return max(int(value.to_integral_value(decimal.ROUND_CEILING)), 0)
