"""Programs from download sites, on a loopback site with the paths of the real ones."""

import hashlib
import io
import pathlib
import platform
import socket
import tarfile
import time
from collections.abc import Iterator

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import go_modules, programs, published_programs
from lib.lab.run import progress
from tests.harness import file_site

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
KUBE = f"v{go_modules.KUBERNETES_VERSION}/bin/linux/{ARCH}"
ETCD = f"etcd-v{published_programs.etcd_version()}-linux-{ARCH}"

pytestmark = pytest.mark.skipif(not ARCH, reason="nothing is published for this CPU")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture()
def site(tmp_path: pathlib.Path) -> Iterator[file_site.FileSite]:
    """Serve the files of dl.k8s.io and of etcd's releases, with their hashes."""
    root = tmp_path / "site"
    folder = root / KUBE
    folder.mkdir(parents=True)
    for program in go_modules.in_groups(["core", "node"]):
        if program.module == "kube":
            content = f"published {program.name}".encode()
            (folder / program.name).write_bytes(content)
            (folder / f"{program.name}.sha256").write_text(digest(content))
    releases = root / f"v{published_programs.etcd_version()}"
    releases.mkdir(exist_ok=True)
    with tarfile.open(releases / f"{ETCD}.tar.gz", "w:gz") as archive:
        for name in ("etcdctl", "etcd"):
            content = f"published {name}".encode()
            member = tarfile.TarInfo(f"{ETCD}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    content = (releases / f"{ETCD}.tar.gz").read_bytes()
    sums = f"{'0' * 64}  other.tar.gz\n{digest(content)}  {ETCD}.tar.gz\n"
    (releases / "SHA256SUMS").write_text(sums)
    with file_site.serving(root) as serving:
        yield serving


def settings(
    env: dict[str, str], site: file_site.FileSite | None = None
) -> dict[str, str]:
    """Return the environment with both sites; without one nothing listens there."""
    url = site.url if site else "http://127.0.0.1:1"
    return {
        **env,
        published_programs.COMPILE: "",
        published_programs.KUBERNETES_SITE: url,
        published_programs.ETCD_SITE: f"{url}/",
    }


def build(where: places.Places, env: dict[str, str], *groups: str) -> None:
    programs.build(where, groups or ("core",), progress.Silent(), env)


def compiled(env: dict[str, str]) -> int:
    noted = pathlib.Path(env["HOME"]) / "calls"
    return noted.read_text().split().count("build") if noted.exists() else 0


def test_published_programs_are_downloaded_and_the_rest_is_compiled(
    where: places.Places, pretended_go: dict[str, str], site: file_site.FileSite
) -> None:
    """Nobody publishes containerd's programs by these paths, nor pause."""
    build(where, settings(pretended_go, site), "core", "node")
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kubelet"):
        program = programs.path(where, name)
        assert program.read_text() == f"published {name}"
        assert program.stat().st_mode & 0o777 == 0o755
    assert programs.path(where, "containerd").read_text().startswith("built from")
    assert compiled(pretended_go) == 2


def test_downloads_are_kept(
    where: places.Places, pretended_go: dict[str, str], site: file_site.FileSite
) -> None:
    build(where, settings(pretended_go, site))
    before = len(site.requests)
    build(where, settings(pretended_go, site))
    assert len(site.requests) == before


def test_the_setting_forces_compiling(
    where: places.Places, pretended_go: dict[str, str], site: file_site.FileSite
) -> None:
    env = {**settings(pretended_go, site), published_programs.COMPILE: "1"}
    build(where, env)
    assert site.requests == []
    assert compiled(pretended_go) == 2


def test_a_site_that_refuses_is_compiled(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    build(where, settings(pretended_go))
    assert compiled(pretended_go) == 2


def test_a_silent_site_costs_three_seconds_once(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        env = {
            **settings(pretended_go),
            published_programs.KUBERNETES_SITE: url,
        }
        began = time.monotonic()
        build(where, env)
        took_s = time.monotonic() - began
    print(f"{took_s:.1f} s")
    # Three programs of Kubernetes are missing: each would cost 3 s.
    assert took_s < 2 * published_programs.REACH_S + 2
    assert compiled(pretended_go) == 2


def test_a_file_with_another_hash_is_refused(
    where: places.Places,
    pretended_go: dict[str, str],
    site: file_site.FileSite,
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "site" / KUBE / "kubectl").write_text("changed on the way")
    with pytest.raises(errors.LabError, match="kubectl: its SHA-256 is") as caught:
        build(where, settings(pretended_go, site))
    assert "MOORING_LAB_COMPILE=1 compiles the program instead" in str(caught.value)
    assert "kubectl" in programs.missing(where, ["core"])


@pytest.mark.parametrize("name", ["kube-apiserver", "kube-apiserver.sha256"])
def test_what_the_site_lacks_is_compiled(
    where: places.Places,
    pretended_go: dict[str, str],
    site: file_site.FileSite,
    tmp_path: pathlib.Path,
    name: str,
) -> None:
    (tmp_path / "site" / KUBE / name).unlink()
    build(where, settings(pretended_go, site))
    assert programs.path(where, "kube-apiserver").read_text().startswith("built from")
    assert programs.path(where, "etcd").read_text() == "published etcd"


def test_another_processor_has_no_download(
    pretended_go: dict[str, str],
) -> None:
    etcd = go_modules.by_name("etcd")
    assert published_programs.download(etcd, pretended_go, "riscv64") is None
