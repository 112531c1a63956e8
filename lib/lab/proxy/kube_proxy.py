"""The real kube-proxy, in nftables mode; built from a pinned Go module.

Its module is apart from that of the other programs of Kubernetes, which lacks some of
its dependencies. To be started in the network namespace of the node, see
`node_network.py`: its tables have the same name on every node.
"""

import datetime
import importlib.resources
import os
import pathlib
import platform
import shutil
from collections.abc import Mapping

from lib.lab import places
from lib.lab.artifacts import (
    commands,
    debian,
    debian_trees,
    go_build,
    go_modules,
    go_toolchain,
    program_archive,
)
from lib.lab.kube import kube_files, pki
from lib.lab.run import processes, progress

NAME = "kube-proxy"
USER = "system:kube-proxy"
"""Source: Kubernetes, default cluster role binding system:node-proxier."""
_PACKAGE = f"k8s.io/kubernetes/cmd/{NAME}"
_SYNCED = "SyncProxyRules complete"


def build(where: places.Places, shown: progress.Progress) -> pathlib.Path:
    """Return the program; build it, and fetch nft, unless both are here.

    Raises:
        LabError: no Go toolchain, modules or packages that cannot be fetched, or a
            build that fails.
    """
    fetch_nft(where, os.environ, shown)
    target = folder(where) / NAME
    if target.exists():
        return target
    program_archive.bring(where, {target.parent.name}, os.environ, shown)
    if target.exists():
        return target
    contents, flags = _contents(), go_modules.ldflags("kube")
    target.parent.mkdir(parents=True, exist_ok=True)
    with go_build.alone(where, shown), shown.step(f"Build {NAME}"):
        least = go_modules.least_go(contents["go.mod"].decode())
        go = go_toolchain.ensure(where, least, os.environ, shown)
        sources = go_build.write_sources(where, NAME, contents)
        env = go_toolchain.environment(where, os.environ)
        pathlib.Path(env["GOTMPDIR"]).mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{NAME}.new")
        commands.run(
            [go, "build", *go_build.flags(flags), "-o", str(part), _PACKAGE],
            failure=f"cannot build {NAME}",
            env=env,
            cwd=sources,
        )
        part.replace(target)
    return target


def _contents() -> Mapping[str, bytes]:
    """Return the files of its Go module, by name."""
    files = importlib.resources.files("lib.lab.proxy") / "module"
    return {file.name: file.read_bytes() for file in files.iterdir()}


def folder(where: places.Places) -> pathlib.Path:
    """Return the folder of the program."""
    machine = f"{platform.system()} {platform.machine()}"
    key = go_modules.key(_contents(), go_modules.ldflags("kube"), machine)
    return where.cache / "bin" / key


def fetch_nft(
    where: places.Places, env: Mapping[str, str], shown: progress.Progress
) -> None:
    """Unpack nft, a Debian package, unless the machine has it.

    Raises:
        LabError: it cannot be downloaded.
    """
    if shutil.which("nft", path=environment(where, env)["PATH"]) is None:
        with shown.step("Fetch nftables") as step:
            choose = debian_trees.with_missing("nftables")
            debian_trees.unpack(_nft_tree(where), choose, env, step)


def _nft_tree(where: places.Places) -> pathlib.Path:
    return where.cache / "nftables"


def environment(where: places.Places, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return `env` with a PATH that contains nft; nothing is fetched."""
    path = env.get("PATH", os.defpath)
    tree = _nft_tree(where)
    if shutil.which("nft", path=path) or not tree.is_dir():
        return {**env, "PATH": path}
    path = os.pathsep.join([path, str(tree / "usr/sbin")])
    return debian.environment(tree, {**env, "PATH": path})


def start(where: places.Places, node: str, shown: progress.Progress) -> None:
    """Start it for a Node, and wait until it has written its rules.

    Raises:
        LabError: it cannot be built, or did not start.
    """
    program = build(where, shown)
    with shown.step(f"Start {NAME}"):
        env = environment(where, os.environ)
        now = datetime.datetime.now(datetime.UTC)
        pair = kube_files.issued(where, NAME, pki.Subject(USER), now)
        kubeconfig = kube_files.write_kubeconfig(where, NAME, pki.Credentials(pair))
        words = (
            program,
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={node}",
            "--proxy-mode=nftables",
            # Limits of connections are those of the machine, not of this namespace.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
            "--v=2",
        )
        processes.start(where, NAME, words, env)
        log = where.log / f"{NAME}.log"
        processes.wait_for(where, NAME, lambda: _SYNCED in log.read_text())


def stop(where: places.Places) -> None:
    """Stop it; fine when it does not run."""
    processes.stop(where, [NAME])
