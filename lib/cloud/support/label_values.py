"""Values of Node labels, made of a cloud's own words: pure."""

import re

_LABEL_MAX = 63
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
"""Source: Kubernetes, "Labels and Selectors", syntax."""
_PREFIX_MAX = 253
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NOT_IN_LABEL = re.compile(r"[^-A-Za-z0-9_.]+")


def is_label_value(text: str) -> bool:
    """Report whether Kubernetes takes the text for a label's value."""
    return len(text) <= _LABEL_MAX and _LABEL.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Report whether Kubernetes takes the text for a label's key: [prefix/]name.

    Source: Kubernetes, "Labels and Selectors", syntax.
    """
    prefix, slash, name = text.rpartition("/")
    is_prefix = len(prefix) <= _PREFIX_MAX and _PREFIX.fullmatch(prefix) is not None
    return bool(name) and is_label_value(name) and (is_prefix if slash else True)


def label_value(text: str) -> str:
    """Convert any text to a value of a label.

    Source: kubernetes/cloud-provider-openstack pkg/util (SanitizeLabel), and trimmed
    again after the cut, where that leaves a value that Kubernetes refuses.
    """
    trimmed = _NOT_IN_LABEL.sub("-", text).strip("-_.")
    return trimmed[:_LABEL_MAX].rstrip("-_.")
