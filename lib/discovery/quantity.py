"""Amounts as Kubernetes writes them: each number in its one canonical form.

Source: k8s.io/apimachinery pkg/api/resource quantity.go (CanonicalizeBytes): the
largest suffix that leaves a whole number.
"""

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def of_mib(mib: int) -> str:
    """Return a number of MiB as a quantity: 8192 is 8Gi, 1536 is 1536Mi, 0 is 0."""
    return _shortest(mib, _BINARY[2:], 1024)


def of_gib(gib: int) -> str:
    """Return a number of GiB as a quantity."""
    return _shortest(gib, _BINARY[3:], 1024)


def of_units(count: int) -> str:
    """Return a count as a quantity: 4 is 4, 1000 is 1k."""
    return _shortest(count, _DECIMAL, 1000)


def _shortest(number: int, suffixes: tuple[str, ...], step: int) -> str:
    if number == 0:
        return "0"
    at = 0
    while number % step == 0 and at + 1 < len(suffixes):
        number //= step
        at += 1
    return f"{number}{suffixes[at]}"
