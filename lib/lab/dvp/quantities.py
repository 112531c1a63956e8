"""Amounts of bytes as Kubernetes writes them. Pure."""

import decimal

_UNITS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}


def parse(text: object) -> int:
    """Return the bytes of a quantity.

    Raises:
        ValueError: it is malformed.

    Source: Kubernetes resource.Quantity.
    """
    whole = str(text)
    digits = whole.rstrip("kKMGTPEim")
    unit = whole[len(digits) :]
    try:
        return int(decimal.Decimal(digits) * _UNITS[unit])
    except (KeyError, ArithmeticError) as error:
        raise ValueError(f"{whole!r} is no quantity of bytes") from error


def write(size_bytes: int) -> str:
    """Return bytes in the largest binary unit that holds them exactly."""
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        if size_bytes and size_bytes % _UNITS[unit] == 0:
            return f"{size_bytes // _UNITS[unit]}{unit}"
    return str(size_bytes)
