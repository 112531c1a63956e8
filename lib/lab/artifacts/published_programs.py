"""Programs of Kubernetes and etcd from their own download sites, which save compiling.

A site that does not answer within 3 s is not asked again during a build: its programs
are compiled. Each download is compared with the SHA-256 that is published beside it.

Source: kubernetes.io/releases/download (paths below dl.k8s.io); etcd's release pages.
"""

import contextlib
import dataclasses
import hashlib
import http.client
import os
import pathlib
import platform
import queue
import re
import shutil
import tarfile
import tempfile
import threading
import urllib.request
from collections.abc import Mapping, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import go_modules
from lib.lab.run import progress

COMPILE = "MOORING_LAB_COMPILE"
"""Setting: any value: everything is compiled, nothing is downloaded."""
KUBERNETES_SITE = "MOORING_LAB_KUBERNETES_SITE"
ETCD_SITE = "MOORING_LAB_ETCD_SITE"
"""Settings: mirrors with the same paths."""
DEFAULT_SITES: Mapping[str, str] = {
    KUBERNETES_SITE: "https://dl.k8s.io",
    ETCD_SITE: "https://github.com/etcd-io/etcd/releases/download",
}
REACH_S = 3.0
"""For the first answer of a site."""
TIMEOUT_S = 60.0
"""Of each wait during a download."""
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_MODULES = ("etcd", "kube", "kubeadm")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_PIECE = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class Download:
    """A published file. site: the setting of its site. digests: URL of its hash.

    member: the program in an archive; empty: the file is the program.
    """

    site: str
    url: str
    digests: str
    member: str = ""


def etcd_version() -> str:
    """Return the version of etcd in go.mod ("3.6.5").

    Raises:
        LabError: go.mod does not state it.
    """
    text = go_modules.files("etcd")["go.mod"].decode()
    match = re.search(r"go\.etcd\.io/etcd/server/v3 v(\S+)", text)
    if match is None:
        raise errors.LabError("modules/etcd/go.mod: go.etcd.io/etcd/server/v3: not set")
    return match[1]


def download(
    program: go_modules.GoProgram, env: Mapping[str, str], machine: str
) -> Download | None:
    """Return where a program is published; None: nowhere, or not for the machine.

    Raises:
        LabError: the setting of the site is no URL.
    """
    arch = _MACHINES.get(machine)
    if arch is None or program.module not in _MODULES:
        return None
    name = ETCD_SITE if program.module == "etcd" else KUBERNETES_SITE
    site = _site(name, env)
    if name == KUBERNETES_SITE:
        version = go_modules.KUBERNETES_VERSION
        url = f"{site}/v{version}/bin/linux/{arch}/{program.name}"
        return Download(name, url, f"{url}.sha256")
    version = etcd_version()
    folder = f"etcd-v{version}-linux-{arch}"
    start = f"{site}/v{version}"
    url = f"{start}/{folder}.tar.gz"
    return Download(name, url, f"{start}/SHA256SUMS", f"{folder}/etcd")


def _site(name: str, env: Mapping[str, str]) -> str:
    mirrors = {
        KUBERNETES_SITE: env.get(KUBERNETES_SITE),
        ETCD_SITE: env.get(ETCD_SITE),
    }
    site = mirrors[name] or DEFAULT_SITES[name]
    if not site.startswith(("http://", "https://")):
        raise errors.LabError(
            f'{name}: invalid value "{site}": must begin with http:// or https://'
        )
    return site.rstrip("/")


def bring(
    where: places.Places,
    programs: Sequence[go_modules.GoProgram],
    env: Mapping[str, str],
    shown: progress.Progress,
) -> None:
    """Download what is published of some programs; what is not there is compiled.

    Raises:
        LabError: a download differs from its published hash.
    """
    if env.get(COMPILE):
        return
    silent: set[str] = set()
    for program in programs:
        source = download(program, env, platform.machine())
        if source is None or source.site in silent:
            continue
        digest = _digest(source)
        if not digest:
            silent.add(source.site)
            continue
        with shown.step(f"Download {program.name}") as step:
            step.note(source.url)
            target = go_modules.folder(where.cache, program.module) / program.name
            try:
                _fetch(source, digest, target)
            except (OSError, http.client.HTTPException, tarfile.TarError) as error:
                step.note(f"{error}: it is compiled")
                silent.add(source.site)


def _digest(source: Download) -> str:
    """Return the published SHA-256; empty if the site does not answer in time."""
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def ask() -> None:
        text = ""
        failures = (OSError, http.client.HTTPException, ValueError)
        with (
            contextlib.suppress(*failures),
            urllib.request.urlopen(  # noqa: S310 - see `_site`
                source.digests, timeout=REACH_S
            ) as answer,
        ):
            text = answer.read(_PIECE).decode()
        answers.put(text)

    # A thread: resolving a name has no time limit of its own.
    threading.Thread(target=ask, name="download-site", daemon=True).start()
    with contextlib.suppress(queue.Empty):
        return _of(source, answers.get(timeout=REACH_S))
    return ""


def _of(source: Download, text: str) -> str:
    """Return the hash of a file in a list of hashes, or the one that is alone."""
    lines = text.splitlines()
    name = source.url.rpartition("/")[2]
    named = [line for line in lines if line.split()[1:] in ([name], [f"*{name}"])]
    match = _DIGEST.search((named or lines[:1] or [""])[0])
    return match[0] if match else ""


def _fetch(source: Download, digest: str, target: pathlib.Path) -> None:
    """Download a program; it appears when it is complete and has its hash.

    Raises:
        LabError: it has another hash. OSError, HTTPException, TarError: it failed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as scratch:
        part = pathlib.Path(scratch, "download")
        with (
            urllib.request.urlopen(  # noqa: S310 - see `_site`
                source.url, timeout=TIMEOUT_S
            ) as answer,
            part.open("wb") as out,
        ):
            shutil.copyfileobj(answer, out, _PIECE)
        with part.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != digest:
            raise errors.LabError(
                f"{source.url}: its SHA-256 is {actual}: must be {digest}, as published"
                f" in {source.digests}; {COMPILE}=1 compiles the program instead"
            )
        if source.member:
            part = _member(part, source.member)
        part.chmod(0o755)
        os.replace(part, target)


def _member(archive: pathlib.Path, member: str) -> pathlib.Path:
    """Return one file of an archive, unpacked beside it."""
    target = archive.with_name("member")
    with tarfile.open(archive, "r:gz") as opened:
        try:
            content = opened.extractfile(member)
        except KeyError as error:
            raise tarfile.TarError(f"{member} is not in the archive") from error
        if content is None:
            raise tarfile.TarError(f"{member} is no file")
        with content, target.open("wb") as out:
            shutil.copyfileobj(content, out, _PIECE)
    return target
