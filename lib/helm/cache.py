"""Cache of charts on disk, each under its digest.

Rules: the name of a file in the cache is the digest of its content; a chart with
another digest than the pinned one is refused.
"""

import hashlib
import os
import pathlib
import re
import tempfile
import threading

from lib.helm import archive, errors, model, sources

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Charts:
    """Charts of all sources. Safe to use from several threads."""

    def __init__(
        self, folder: pathlib.Path, opener: sources.Opener = sources.open_source
    ) -> None:
        self._folder = folder
        self._opener = opener
        self._lock = threading.Lock()
        self._sources: dict[str, sources.Source] = {}

    def newest(self, url: str, name: str) -> str:
        """Return the newest version that a source has.

        Raises:
            SourceError: the source cannot be read.
        """
        return self._source(url).newest(name)

    def get(self, url: str, pin: model.Pin) -> model.Chart:
        """Return a chart; the source is only read when the cache lacks it.

        Raises:
            SourceError: the chart is not available, or has another digest.
        """
        if pin.digest is not None:
            if not _DIGEST.fullmatch(pin.digest):
                raise errors.SourceInvalid(
                    f'digest of chart {pin.name}: invalid value "{pin.digest}": must'
                    " be sha256: and 64 hex digits"
                )
            path = self._path(pin.digest)
            if path.is_file():
                return model.Chart(pin.name, pin.version, pin.digest, path)
        content = self._source(url).fetch(pin.name, pin.version)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if pin.digest is not None and digest != pin.digest:
            raise errors.DigestMismatch(
                f"chart {pin.name} {pin.version} of {url}: digest {digest}: must be"
                f" the pinned {pin.digest}; a changed chart requires another version"
                " or another pin"
            )
        if archive.member(content, "Chart.yaml") is None:
            raise errors.SourceInvalid(
                f"chart {pin.name} {pin.version} of {url}: must be a chart's archive"
            )
        try:
            path = self._store(digest, content)
        except OSError as error:
            raise errors.SourceUnreachable(
                f"chart cache {self._folder}: {error.strerror}"
            ) from error
        return model.Chart(pin.name, pin.version, digest, path)

    def _source(self, url: str) -> sources.Source:
        with self._lock:
            if url not in self._sources:
                self._sources[url] = self._opener(url)
            return self._sources[url]

    def _path(self, digest: str) -> pathlib.Path:
        return self._folder / f"{digest.removeprefix('sha256:')}.tgz"

    def _store(self, digest: str, content: bytes) -> pathlib.Path:
        """Write a chart atomically."""
        path = self._path(digest)
        if path.is_file():
            return path
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(".part", dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            pathlib.Path(name).replace(path)
        except OSError:
            pathlib.Path(name).unlink(missing_ok=True)
            raise
        return path
