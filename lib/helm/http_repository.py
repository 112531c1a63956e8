"""A chart repository over HTTP: index.yaml and archives.

Source: helm.sh/docs/topics/chart_repository.
"""

import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence

import msgspec
import yaml

from lib.helm import errors, versions, web, yaml_text

INDEX_MAX = 64 * 1024 * 1024
ARCHIVE_MAX = 16 * 1024 * 1024
INDEX_AGE_S = 60.0
"""An index is used for this long: charts of one reconciliation share it."""


class _Version(msgspec.Struct, frozen=True):
    version: str = ""
    urls: Sequence[str] = ()


class _Index(msgspec.Struct, frozen=True):
    entries: Mapping[str, Sequence[_Version]] = {}


class Repository:
    """One repository. Implements lib/helm/sources.py, Source; safe for threads."""

    def __init__(self, url: str, reader: web.Reader) -> None:
        self._reader = reader
        self._url = url.rstrip("/")
        self._lock = threading.Lock()
        self._index: _Index | None = None
        self._read_at = 0.0

    def newest(self, name: str) -> str:
        """See `Source.newest`."""
        offered = [entry.version for entry in self._entries(name)]
        version = versions.newest(offered)
        if version is None:
            raise errors.ChartNotFound(
                f"chart {name} in {self._url}: no version but pre-releases"
            )
        return version

    def fetch(self, name: str, version: str) -> bytes:
        """See `Source.fetch`."""
        entries = self._entries(name)
        entry = next((entry for entry in entries if entry.version == version), None)
        if entry is None:
            offered = versions.some(entry.version for entry in entries)
            raise errors.ChartNotFound(
                f'chart {name} in {self._url}: version "{version}" not found: must be'
                f" one of the repository's versions, such as {offered}"
            )
        if not entry.urls:
            raise self._invalid(f"chart {name} {version} has no urls")
        url = urllib.parse.urljoin(f"{self._url}/", entry.urls[0])
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise self._invalid(f"chart {name} {version} is not at an http(s) address")
        return web.require_ok(self._get(url, ARCHIVE_MAX), url)

    def _get(self, url: str, limit: int) -> web.Answer:
        """Send a GET with the account of the address, if there is one."""
        return self._reader.get(url, limit, account=self._reader.access.account(url))

    def _entries(self, name: str) -> Sequence[_Version]:
        entries = self._current().entries.get(name)
        if not entries:
            raise errors.ChartNotFound(f"chart {name}: not found in {self._url}")
        return entries

    def _current(self) -> _Index:
        with self._lock:
            now = time.monotonic()
            if self._index is None or now - self._read_at > INDEX_AGE_S:
                self._index = self._read()
                self._read_at = now
            return self._index

    def _read(self) -> _Index:
        url = f"{self._url}/index.yaml"
        body = web.require_ok(self._get(url, INDEX_MAX), url)
        try:
            document = yaml_text.load(body)
            return msgspec.convert(document, _Index, strict=False)
        except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
            raise self._invalid("index.yaml is no index of charts") from error

    def _invalid(self, reason: str) -> errors.SourceInvalid:
        return errors.SourceInvalid(f"chart repository {self._url}: {reason}")
