"""The HTTP proxy of the reference's workloads, as a value of the charts: pure.

A URL without a scheme is one of http://, as in the reference. A value that the chart
rejects is omitted; a URL is shown only if it is accepted, since a rejected one may
contain a password.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lib.migration.changed_items import ChangedItem
from lib.migration.reference import ReferenceProgram, ReplacedBy
from lib.process import redaction

_URLS: Mapping[str, str] = {"httpProxy": "HTTP_PROXY", "httpsProxy": "HTTPS_PROXY"}
_HOSTS = "noProxy"
ALWAYS_DIRECT = (
    "127.0.0.1",
    "::1",
    "localhost",
    "169.254.169.254",
    "$(KUBERNETES_SERVICE_HOST)",
    ".svc",
    ".cluster.local",
)
"""Entries of NO_PROXY that the charts add. Source: library.proxy of charts/library."""
_DIRECT = frozenset(host.lstrip(".") for host in ALWAYS_DIRECT)
URL = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?")
HOST = re.compile(r"\.?[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9:])?(/[0-9]{1,3})?")
"""What the chart accepts. Source: charts/library/shared.schema.json."""
_LENGTH_MAX = 253
_NONE = "none"
_UNREAD = "a value from another object, which is not read,"
_CREDENTIALS = "a URL with a user name or password, which the chart rejects,"
_INVALID = "a URL that the chart rejects"


@dataclasses.dataclass(frozen=True, slots=True)
class _Proxy:
    """The proxy of a workload.

    urls: by field of the chart, those that it accepts. hosts: that are reached
    directly, likewise. shown: text by field, for differences.
    """

    workload: str
    has_url: bool
    urls: Mapping[str, str]
    hosts: Sequence[str]
    shown: Mapping[str, str]


def values(programs: Iterable[ReferenceProgram]) -> dict[str, Any]:
    """Return `proxy` below `global`; empty without a proxy that the chart accepts."""
    shared = _shared(_read(programs))
    if shared is None:
        return {}
    hosts = {_HOSTS: list(shared.hosts)} if shared.hosts else {}
    proxy = {**shared.urls, **hosts}
    return {"proxy": proxy} if proxy else {}


def differences(programs: Iterable[ReferenceProgram]) -> list[ChangedItem]:
    """Return the settings of workloads that the value does not have."""
    proxies = _read(programs)
    shared = _shared(proxies)
    if shared is None:
        return []
    after = {field: shared.urls.get(field, _NONE) for field in _URLS}
    after[_HOSTS] = _listed(shared.hosts)
    workloads: dict[tuple[str, str], list[str]] = {}
    for field, text in after.items():
        for proxy in proxies:
            is_ignored = field == _HOSTS and not proxy.has_url
            if proxy.shown[field] != text and not is_ignored:
                key = field, proxy.shown[field]
                workloads.setdefault(key, []).append(proxy.workload)
    return [
        ChangedItem(
            f"global.proxy.{field}",
            f"{text} in {', '.join(names)}",
            "not set" if after[field] == _NONE else f"{after[field]} for all",
        )
        for (field, text), names in workloads.items()
    ]


def _shared(proxies: Sequence[_Proxy]) -> _Proxy | None:
    """Return the first proxy with the most URLs that the chart accepts."""
    stated = (proxy for proxy in proxies if proxy.has_url)
    return max(stated, key=lambda proxy: len(proxy.urls), default=None)


def _read(programs: Iterable[ReferenceProgram]) -> list[_Proxy]:
    """Return the proxies of workloads, those of the manager first; csi-node has none.

    It connects to the metadata service, which is always reached directly.
    """
    roles = list(ReplacedBy)
    return [
        _proxy(program)
        for program in sorted(programs, key=lambda program: roles.index(program.role))
        if program.role is not ReplacedBy.CSI_NODE
    ]


def _proxy(program: ReferenceProgram) -> _Proxy:
    urls = {field: _url(program.proxy.get(name, "")) for field, name in _URLS.items()}
    hosts, shown = _hosts(program.proxy.get("NO_PROXY", ""))
    return _Proxy(
        f"{program.kind} {program.name}",
        not program.proxy.keys().isdisjoint(_URLS.values()),
        {field: url for field, (url, _) in urls.items() if url},
        hosts,
        {field: text for field, (_, text) in urls.items()} | {_HOSTS: shown},
    )


def _url(text: str | None) -> tuple[str, str]:
    """Return a URL, empty if the chart rejects it, and the text that is shown."""
    if not text:
        return "", _UNREAD if text is None else _NONE
    if "@" in text:
        return "", _CREDENTIALS
    url = text if "://" in text else f"http://{text}"
    return (url, url) if _is_accepted(url, URL) else ("", _INVALID)


def _hosts(text: str | None) -> tuple[list[str], str]:
    """Return the hosts that the chart neither adds nor rejects, and the shown text."""
    if text is None:
        return [], _UNREAD
    entries = dict.fromkeys(filter(None, map(str.strip, text.split(","))))
    hosts = [host for host in entries if host.lstrip(".") not in _DIRECT]
    return [host for host in hosts if _is_accepted(host, HOST)], _listed(hosts)


def _listed(hosts: Sequence[str]) -> str:
    """Return hosts in an order that does not depend on that of a workload."""
    shown = (redaction.REDACTED if "@" in host else host for host in hosts)
    return ", ".join(sorted(shown)) or _NONE


def _is_accepted(text: str, pattern: re.Pattern[str]) -> bool:
    return len(text) <= _LENGTH_MAX and pattern.fullmatch(text) is not None
