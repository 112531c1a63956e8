"""Builds the images of components: an OCI layout and an archive of each."""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import oci_image, programs
from lib.lab.images import (
    bill,
    debian_package,
    description,
    go_programs,
    package_lock,
    rootfs,
)
from lib.lab.images.interpreter import Interpreter
from lib.lab.run import progress
from lib.process import metrics

_LABEL = "org.opencontainers.image"
"""Source: OCI Image Format Specification 1.1, annotations."""
REVISION = f"{_LABEL}.revision"
"""Label with the commit."""
REGISTRY = "localhost/mooring"
"""Prefix of the names of images that no registry has."""
LICENCE = "Apache-2.0"
LICENCE_FILES = ("LICENSE", "NOTICE")
_GIT_S = 900.0
_JOBS = 2
"""Images that are built in parallel."""


@dataclasses.dataclass(frozen=True, slots=True)
class ImageSource:
    """What images are built from.

    root: of the checkout. pexes: files of the components, by name. commit: of the PEX
    files; empty: not known. created: time of the commit, RFC 3339.
    """

    root: pathlib.Path
    pexes: Mapping[str, pathlib.Path]
    commit: str = ""
    created: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """An image that was built.

    layout: its folder; file: its archive; bill: its bill of materials.
    """

    name: str
    reference: str
    digest: str
    layers: Sequence[oci_image.Layer]
    layout: pathlib.Path
    file: pathlib.Path
    bill: pathlib.Path

    @property
    def size(self) -> int:
        """Return the bytes that a node downloads."""
        return sum(layer.size for layer in self.layers)

    @property
    def own_size(self) -> int:
        """Return the bytes of the layers that no other image has."""
        return sum(layer.size for layer in self.layers[1:])


@dataclasses.dataclass(frozen=True, slots=True)
class _Workshop:
    """Parts that all images share.

    scratch: a folder for unpacked layers. base_packages: names of those of the base.
    modules: parts of each Go program, with the texts of their licences. distributions:
    the part of each third-party distribution, once it is compiled.
    """

    where: places.Places
    source: ImageSource
    output: pathlib.Path
    scratch: pathlib.Path
    pins: Mapping[str, package_lock.Pinned]
    packages: Mapping[str, debian_package.DebianPackage]
    base_packages: Sequence[str]
    modules: Mapping[str, Sequence[tuple[bill.Part, str]]]
    base: oci_image.Layer
    python: Interpreter
    distributions: dict[str, bill.Part]

    def wheel(self, name: str) -> pathlib.Path:
        """Return the folder of a third-party distribution."""
        return self.scratch / "wheels" / name

    def compile_wheels(
        self, pexes: Iterable[pathlib.Path], step: progress.ProgressStep
    ) -> None:
        """Unpack and compile the distributions of some PEX files, each once."""
        holders = {name: pex for pex in pexes for name in rootfs.wheels(pex)}

        def compile_wheel(name: str) -> None:
            step.note(name.partition("-")[0])
            rootfs.unpack_wheel(self.wheel(name), holders[name], name)
            self.python.compile(self.wheel(name))
            self.distributions[name] = bill.of_wheel(holders[name], name)

        with concurrent.futures.ThreadPoolExecutor(_JOBS) as pool:
            list(pool.map(compile_wheel, holders))


def build(
    where: places.Places,
    source: ImageSource,
    names: Sequence[str],
    output: pathlib.Path,
    shown: progress.Progress,
) -> tuple[Image, ...]:
    """Build images into output: NAME/ is the layout, NAME.tar the archive.

    Raises:
        LabError: a description is malformed, or a part is missing.
    """
    described = {name: description.read(source.root, name) for name in names}
    names_of_programs = sorted(
        {name for image in described.values() for name in image.programs}
    )
    if names_of_programs:
        programs.build(where, names_of_programs, shown)
    modules = {x: go_programs.parts(where, x, shown) for x in names_of_programs}
    output.mkdir(parents=True, exist_ok=True)
    with _workshop(where, source, described, output, modules, shown) as workshop:
        pexes = [source.pexes[image.pex] for image in described.values()]
        with shown.step("Compile third-party distributions") as step:
            workshop.compile_wheels(pexes, step)

        def build_image(row: tuple[str, description.Description]) -> Image:
            return _build(workshop, *row, shown)

        with concurrent.futures.ThreadPoolExecutor(_JOBS) as pool:
            return tuple(pool.map(build_image, described.items()))


@contextlib.contextmanager
def _workshop(
    where: places.Places,
    source: ImageSource,
    described: Mapping[str, description.Description],
    output: pathlib.Path,
    modules: Mapping[str, Sequence[tuple[bill.Part, str]]],
    shown: progress.Progress,
) -> Iterator[_Workshop]:
    """Fetch packages and build the base, in a folder that is removed afterwards."""
    base = description.base(source.root).packages
    desired = [*base, *(x for image in described.values() for x in image.packages)]
    pins = package_lock.read(source.root)
    with shown.step("Download pinned Debian packages") as step:
        packages = _packages(where, dict.fromkeys(desired), pins, step)
    # Beside the output, so that files can be moved into it.
    with tempfile.TemporaryDirectory(dir=output, prefix=".build-") as folder:
        scratch = pathlib.Path(folder)
        root = scratch / "base"
        root.mkdir()
        with shown.step("Build the base of all images"):
            rootfs.write_base(root, [packages[name] for name in base], base)
            python = Interpreter(root)
            python.compile(root)
            python.require_libraries(rootfs.binaries(root))
            layer = _layer(python, "base", root)
        yield _Workshop(
            where,
            source,
            output,
            scratch,
            pins,
            packages,
            tuple(base),
            modules,
            layer,
            python,
            {},
        )


def _packages(
    where: places.Places,
    names: Mapping[str, None],
    pins: Mapping[str, package_lock.Pinned],
    step: progress.ProgressStep,
) -> Mapping[str, debian_package.DebianPackage]:
    missing = [name for name in names if name not in pins]
    if missing:
        raise errors.LabError(
            f"{', '.join(missing)}: no pinned version: run `{package_lock.UPDATE}`"
        )
    desired = [pins[name] for name in names]
    sources = package_lock.repositories(os.environ)
    files = package_lock.fetch(where, desired, sources, step)
    return {name: debian_package.read(file) for name, file in files.items()}


def _build(
    workshop: _Workshop,
    name: str,
    described: description.Description,
    shown: progress.Progress,
) -> Image:
    source = workshop.source
    pex = source.pexes[described.pex]
    version = rootfs.version(pex, described)
    folder = workshop.scratch / name
    with shown.step(f"Build the image {name}") as step:
        roots = _write_layers(workshop, folder, described, pex)
        binaries = [file for root in roots for file in rootfs.binaries(root)]
        workshop.python.require_libraries(binaries, *roots)
        layers = [workshop.base]
        for root in roots:
            step.note(f"layer {root.name}")
            layers.append(_layer(workshop.python, root.name, root))
        manifest = oci_image.Manifest(
            reference=f"{REGISTRY}/{name}:{version}",
            config=configuration(name, described, version, source),
            architecture=package_lock.architecture(),
            created=source.created,
        )
        layout = workshop.output / name
        file = workshop.output / f"{name}.tar"
        digest = _publish(folder, layout, file, manifest, layers)
        written = workshop.output / f"{name}{bill.SUFFIX}"
        parts = _parts(workshop, described, roots)
        written.write_text(bill.document(name, version, digest, source.created, parts))
    shutil.rmtree(folder)
    return Image(name, manifest.reference, digest, layers, layout, file, written)


def _parts(
    workshop: _Workshop,
    described: description.Description,
    roots: Sequence[pathlib.Path],
) -> Iterator[bill.Part]:
    """Yield each package, distribution and Go module of an image. roots: its layers."""
    folders = [workshop.python.base, *roots]
    for name in (*workshop.base_packages, *described.packages):
        package, pin = workshop.packages[name], workshop.pins[name]
        text = rootfs.copyright_of(folders, name)
        yield bill.of_package(package, pin.sha256, text)
    pex = workshop.source.pexes[described.pex]
    for wheel in rootfs.wheels(pex):
        yield workshop.distributions[wheel]
    for name in described.programs:
        yield from (part for part, _ in workshop.modules[name])


def _publish(
    folder: pathlib.Path,
    layout: pathlib.Path,
    file: pathlib.Path,
    manifest: oci_image.Manifest,
    layers: Sequence[oci_image.Layer],
) -> str:
    """Write layout and archive; both appear when they are complete."""
    digest = oci_image.write_layout(folder / "layout", manifest, layers)
    oci_image.write_archive(folder / "layout", folder / "archive.tar")
    shutil.rmtree(layout, ignore_errors=True)
    (folder / "layout").rename(layout)
    (folder / "archive.tar").replace(file)
    return digest


def _write_layers(
    workshop: _Workshop,
    folder: pathlib.Path,
    described: description.Description,
    pex: pathlib.Path,
) -> list[pathlib.Path]:
    """Write the folders of the layers above the base; those without files are none."""
    roots = [folder / name for name in ("tools", "distributions", "project")]
    for root in roots:
        root.mkdir(parents=True)
    tools, distributions, project = roots
    kept = described.packages
    rootfs.write_packages(tools, [workshop.packages[name] for name in kept], kept)
    for name in rootfs.wheels(pex):
        rootfs.join(distributions, workshop.wheel(name))
    files = {name: programs.path(workshop.where, name) for name in described.programs}
    rootfs.write_programs(distributions, files)
    for name in described.programs:
        for part, text in workshop.modules[name]:
            rootfs.write_licence(distributions, f"go/{part.name}", text)
    source = workshop.source.root
    texts = {name: (source / name).read_bytes() for name in LICENCE_FILES}
    rootfs.write_project(project, described, pex, texts)
    workshop.python.compile(project)
    return roots if kept else roots[1:]


def _layer(python: Interpreter, name: str, root: pathlib.Path) -> oci_image.Layer:
    plain, packed = root.with_suffix(".tar"), root.with_suffix(".tar.gz")
    oci_image.write_layer(root, plain)
    python.compress(plain, packed)
    layer = oci_image.Layer(
        name,
        packed,
        oci_image.file_digest(plain),
        oci_image.file_digest(packed),
        packed.stat().st_size,
        plain.stat().st_size,
    )
    plain.unlink()
    return layer


def commit_of(checkout: pathlib.Path) -> str:
    """Return the commit of a checkout, empty without git.

    It ends with "-dirty" when tracked files differ from it. Source: git-describe(1).
    """
    words = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return _git(checkout, *words)


def created_of(checkout: pathlib.Path) -> str:
    """Return the time of the commit of a checkout in UTC, empty without git."""
    form = "--date=format-local:%Y-%m-%dT%H:%M:%SZ"
    return _git(checkout, "log", "-1", form, "--format=%cd")


def _git(checkout: pathlib.Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ("git", *words),
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
            timeout=_GIT_S,
            env={**os.environ, "TZ": "UTC"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def configuration(
    name: str, described: description.Description, version: str, source: ImageSource
) -> dict[str, object]:
    """Return how it is run. Source: OCI Image Format Specification 1.1, config."""
    labels = {
        "title": name,
        "description": described.text,
        "version": version,
        "licenses": LICENCE,
        "revision": source.commit,
        "created": source.created,
        "base.name": package_lock.SUITE,
    }
    return {
        "User": f"{described.user}:{described.user}",
        "Entrypoint": [f"/{rootfs.BIN}/{described.pex}"],
        "Env": [
            f"PATH={':'.join(rootfs.SEARCH)}",
            f"HOME=/{rootfs.SCRATCH}",
            f"SSL_CERT_FILE=/{rootfs.CERTIFICATES}",
            *([f"{metrics.COMMIT}={source.commit}"] if source.commit else []),
        ],
        "Labels": {f"{_LABEL}.{key}": text for key, text in labels.items() if text},
        "WorkingDir": f"/{rootfs.SCRATCH}",
    }
