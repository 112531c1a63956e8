"""Writes YAML byte for byte as Go's tools do, where a checksum is taken of it. Pure.

Source: sigs.k8s.io/yaml 1.6.0, Marshal; go.yaml.in/yaml/v2 encode.go and resolve.go.
Known differences: the texts `=` and `<<`, and line ends that only Unicode knows.
"""

import re
from collections.abc import Mapping

import yaml

_WORDS = re.compile(
    r"|~|null|Null|NULL|[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"
    r"|true|True|TRUE|false|False|FALSE|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_NUMBERS = re.compile(
    r"[-+]?(0x[0-9a-fA-F]+|0b[01]+|0o[0-7]+"
    r"|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)"
)
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_TIMES = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_BMP_END = "\uffff"


def dump(document: Mapping[str, object]) -> str:
    """Write one document, keys sorted, with one line end at its end."""
    return yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=True,
        default_flow_style=False,
        allow_unicode=True,
    )


class _Dumper(yaml.SafeDumper):
    """Chooses quotes as Go does."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, _style(text))


def _style(text: str) -> str | None:
    """Return how a text is written; None leaves it to the emitter, which agrees."""
    if "\n" in text:
        return "|"
    number = text[:1] + text[1:].replace("_", "")
    is_other = (
        _WORDS.fullmatch(text)
        or _NUMBERS.fullmatch(number)
        or _BASE_60.fullmatch(text)
        or _TIMES.fullmatch(text)
    )
    return '"' if is_other or max(text) > _BMP_END else None


_Dumper.add_representer(str, _text)
