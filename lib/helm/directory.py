"""Charts in a folder: a checkout, unpacked charts, or archives.

An unpacked chart is packed in memory, together with the charts of the folder that it
depends on (`file://../name`); equal content gives equal bytes. Nothing is written.
"""

import dataclasses
import gzip
import io
import pathlib
import tarfile
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import yaml

from lib.helm import archive, errors, versions, yaml_text

CHART_FILE = "Chart.yaml"
FILES_MAX = 5000
BYTES_MAX = 64 * 1024 * 1024
DEPTH_MAX = 5
_SKIPPED = (".git", "tmpcharts", "__pycache__")


class _Dependency(msgspec.Struct, frozen=True):
    name: str = ""
    repository: str = ""


class _Chart(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = ""
    dependencies: Sequence[_Dependency] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Directory:
    """One folder. Implements lib/helm/sources.py, Source; safe for threads."""

    path: pathlib.Path

    def newest(self, name: str) -> str:
        """See `Source.newest`."""
        version = versions.newest(self._offered(name))
        if version is None:
            raise errors.ChartNotFound(
                f"chart {name} in {self.path}: no version but pre-releases"
            )
        return version

    def fetch(self, name: str, version: str) -> bytes:
        """See `Source.fetch`."""
        offered = self._offered(name)
        if version not in offered:
            raise errors.ChartNotFound(
                f'chart {name} in {self.path}: version "{version}" not found: must be'
                f" one of the folder's versions, such as {versions.some(offered)}"
            )
        where = offered[version]
        try:
            return where.read_bytes() if where.is_file() else pack(where, name)
        except OSError as error:
            raise self._unreadable(error) from error

    def _offered(self, name: str) -> Mapping[str, pathlib.Path]:
        """Return the versions of a chart and where each is."""
        if "/" in name or name in ("", ".", ".."):
            text = f'chart name: invalid value "{name}": must not have a slash'
            raise errors.SourceInvalid(text)
        try:
            if not self.path.is_dir():
                raise errors.SourceUnreachable(f"chart folder {self.path}: not found")
            charts = {
                chart.version: path
                for path in sorted(self.path.glob(f"{name}-*.tgz"))
                if (chart := read_archive(path)).name == name
            }
            folder = self.path / name
            if (folder / CHART_FILE).is_file():
                charts[read(folder).version] = folder
        except OSError as error:
            raise self._unreadable(error) from error
        if not charts:
            raise errors.ChartNotFound(f"chart {name}: not found in {self.path}")
        return charts

    def _unreadable(self, error: OSError) -> errors.SourceUnreachable:
        return errors.SourceUnreachable(
            f"chart folder {self.path}: {error.strerror}: {error.filename}"
        )


def read(folder: pathlib.Path) -> _Chart:
    """Read the Chart.yaml of an unpacked chart.

    Raises:
        OSError, SourceInvalid: it cannot be read, or is malformed.
    """
    return _parse((folder / CHART_FILE).read_bytes(), str(folder / CHART_FILE))


def read_archive(path: pathlib.Path) -> _Chart:
    """Read the Chart.yaml of an archive; errors: see `read`."""
    body = archive.member(path.read_bytes(), CHART_FILE)
    if body is None:
        text = f"{path}: must be a chart's archive with {CHART_FILE}"
        raise errors.SourceInvalid(text)
    return _parse(body, str(path))


def _parse(body: bytes, where: str) -> _Chart:
    try:
        document = yaml_text.load(body)
        return msgspec.convert(document, _Chart, strict=False)
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise errors.SourceInvalid(f"{where}: must be a Chart.yaml") from error


def pack(folder: pathlib.Path, name: str) -> bytes:
    """Return the archive of an unpacked chart; errors: see `read`."""
    files: dict[str, bytes] = {}
    _collect(folder, name, files, DEPTH_MAX)
    if sum(map(len, files.values())) > BYTES_MAX:
        raise errors.SourceInvalid(f"{folder}: must have at most {BYTES_MAX} bytes")
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _collect(
    folder: pathlib.Path, prefix: str, files: dict[str, bytes], depth: int
) -> None:
    """Put the files of a chart, and of those it depends on, into `files`."""
    for path in _walk(folder):
        files[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
        if len(files) > FILES_MAX:
            text = f"{folder}: must have at most {FILES_MAX} files"
            raise errors.SourceInvalid(text)
    for dependency in read(folder).dependencies:
        below = f"{prefix}/charts/{dependency.name}"
        is_packed = any(file.startswith((f"{below}/", f"{below}-")) for file in files)
        if is_packed or not dependency.repository.startswith("file://"):
            continue
        relative = dependency.repository.removeprefix("file://")
        where = (folder / relative).resolve()
        if depth == 0 or not where.is_relative_to(folder.parent.resolve()):
            raise errors.SourceInvalid(
                f"{folder / CHART_FILE}: dependency {dependency.name}:"
                f' invalid value "{dependency.repository}": must be a chart of the'
                " same folder"
            )
        _collect(where, below, files, depth - 1)


def _walk(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield the files below a folder, without links that lead out of it."""
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if any(part in _SKIPPED for part in path.relative_to(folder).parts):
            continue
        if path.is_file() and path.resolve().is_relative_to(root):
            yield path
