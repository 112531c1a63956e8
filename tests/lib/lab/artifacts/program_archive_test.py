"""An archive of built programs is used where its pins are those of this version."""

import hashlib
import io
import pathlib
import tarfile
from collections.abc import Callable

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import (
    go_modules,
    program_archive,
    programs,
    single_program,
)
from lib.lab.run import progress
from tests.harness import file_site

SINGLE = single_program.SingleProgram("cluster-api", "example/core", "example")


@pytest.fixture()
def archive(
    where: places.Places, pretended_go: dict[str, str], tmp_path: pathlib.Path
) -> pathlib.Path:
    """Pack what a build has made, and empty the cache."""
    programs.build(where, ["core"], progress.Silent(), pretended_go)
    folder = SINGLE.folder(where)
    (folder / "config").mkdir(parents=True)
    (folder / "config/role.yaml").write_text("kept beside the program")
    (folder / "cluster-api").write_text("built")
    (folder / "cluster-api").chmod(0o755)
    file = tmp_path / "programs.tar.gz"
    names = [path.name for path in (where.cache / "bin").iterdir()]
    program_archive.pack(where, names, file)
    (where.cache / "bin").rename(tmp_path / "former-bin")
    (tmp_path / "calls").unlink()
    return file


def build(where: places.Places, env: dict[str, str], source: str) -> None:
    env = {**env, program_archive.SETTING: source}
    programs.build(where, ["core"], progress.Silent(), env)


def calls(env: dict[str, str]) -> bool:
    return (pathlib.Path(env["HOME"]) / "calls").exists()


def as_file(archive: pathlib.Path, site: file_site.FileSite) -> str:
    return str(archive)


def as_url(archive: pathlib.Path, site: file_site.FileSite) -> str:
    return f"{site.url}/{archive.name}"


def with_hash(archive: pathlib.Path, site: file_site.FileSite) -> str:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f"{as_url(archive, site)}#sha256={digest}"


@pytest.mark.parametrize("source", [as_file, as_url, with_hash])
def test_programs_come_from_a_file_or_a_url_without_go(
    where: places.Places,
    pretended_go: dict[str, str],
    archive: pathlib.Path,
    source: Callable[[pathlib.Path, file_site.FileSite], str],
) -> None:
    with file_site.serving(archive.parent) as site:
        build(where, pretended_go, source(archive, site))
    assert programs.missing(where, ["core"]) == ()
    assert not calls(pretended_go)


def test_a_program_of_its_own_module_comes_with_what_is_beside_it(
    where: places.Places, pretended_go: dict[str, str], archive: pathlib.Path
) -> None:
    env = {**pretended_go, program_archive.SETTING: str(archive)}
    SINGLE.build(where, progress.Silent(), env)
    assert SINGLE.path(where).read_text() == "built"
    assert (SINGLE.folder(where) / "config/role.yaml").exists()


def test_what_the_archive_lacks_is_compiled(
    where: places.Places, pretended_go: dict[str, str], archive: pathlib.Path
) -> None:
    env = {**pretended_go, program_archive.SETTING: str(archive)}
    programs.build(where, ["core", "helm"], progress.Silent(), env)
    assert programs.missing(where, ["core", "helm"]) == ()
    assert calls(pretended_go)


def test_the_same_programs_give_the_same_archive(
    where: places.Places, archive: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    again = tmp_path / "again.tar.gz"
    (tmp_path / "former-bin").rename(where.cache / "bin")
    names = [path.name for path in (where.cache / "bin").iterdir()]
    program_archive.pack(where, names, again)
    assert again.read_bytes() == archive.read_bytes()


def other_pins(folder: pathlib.Path) -> str:
    file = folder / "other.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        member = tarfile.TarInfo(f"bin/{'0' * 16}/etcd")
        archive.addfile(member, io.BytesIO())
    return str(file)


def outside(folder: pathlib.Path) -> str:
    file = folder / "outside.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("bin/../../passwd"), io.BytesIO())
    return str(file)


def damaged(folder: pathlib.Path) -> str:
    whole = (folder / "programs.tar.gz").read_bytes()
    file = folder / "damaged.tar.gz"
    file.write_bytes(whole[: len(whole) // 2])
    return str(file)


def another_hash(folder: pathlib.Path) -> str:
    return f"{folder / 'programs.tar.gz'}#sha256={'0' * 64}"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (other_pins, f"no programs of Kubernetes {go_modules.KUBERNETES_VERSION}"),
        (outside, "bin/../../passwd is no program of the lab"),
        (damaged, "must be the file or URL of an archive"),
        (another_hash, "its SHA-256 is "),
        (lambda folder: f"{folder}/programs.tar.gz#md5=1", "after # must be sha256="),
        (lambda folder: f"{folder}/none.tar.gz", "No such file or directory"),
        (lambda folder: "http://127.0.0.1:1/programs.tar.gz", "Connection refused"),
    ],
    ids=[
        "an archive of other versions",
        "a member outside of the cache",
        "an archive that was cut off",
        "an archive with another hash",
        "a hash of another kind",
        "a file that does not exist",
        "a server that does not run",
    ],
)
def test_a_bad_archive_is_named_and_leaves_no_program(
    where: places.Places,
    pretended_go: dict[str, str],
    archive: pathlib.Path,
    source: Callable[[pathlib.Path], str],
    text: str,
) -> None:
    with pytest.raises(errors.LabError, match=program_archive.SETTING) as caught:
        build(where, pretended_go, source(archive.parent))
    assert text in str(caught.value)
    assert len(programs.missing(where, ["core"])) == 4
