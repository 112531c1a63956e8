"""What the lab builds from Go modules, and where each program is kept.

Pure but for reading the module files, which are resources of this package. A program
is placed under a hash of all that decides what it is, so a new pin never meets an old
program, and two checkouts with different pins share one cache.

To raise a version: `go get -tool PACKAGE@VERSION` in the module's folder. The replace
lines of Kubernetes' own go.mod do not reach those who import it, and are repeated in
modules/kube/go.mod; they change with its version. modules/reference repeats them, and
leaves newer versions of what it shares with modules/kube out, so that Go has it cached:
a replaced module would be compiled once more.

Source: each module's go.mod and go.sum, in modules/.
"""

import dataclasses
import hashlib
import importlib.resources
import pathlib
import platform
import re
from collections.abc import Collection, Mapping

from lib.lab import errors

KUBERNETES_VERSION = "1.36.3"
"""Also in modules/kube/go.mod; a test holds the two together."""

REFERENCE_VERSION = "1.36.0"
"""Of cloud-provider-openstack; also in modules/reference/go.mod."""

_VERSION_PACKAGE = "k8s.io/component-base/version"
_STAMP = {
    "gitVersion": f"v{KUBERNETES_VERSION}",
    "gitMajor": KUBERNETES_VERSION.split(".")[0],
    "gitMinor": KUBERNETES_VERSION.split(".")[1],
    "gitTreeState": "clean",
    "gitCommit": "0" * 40,
    "buildDate": "2026-01-01T00:00:00Z",
}
_REFERENCE = "k8s.io/cloud-provider-openstack"
_STRIP = "-s -w"
# Without it the programs report v0.0.0-master, and clients that compare versions
# (Cluster API for one) refuse to work with them.
# Source: Kubernetes hack/lib/version.sh.
_STAMPED = " ".join(
    [_STRIP, *(f"-X {_VERSION_PACKAGE}.{key}={text}" for key, text in _STAMP.items())]
)
_LDFLAGS = {
    "kube": _STAMPED,
    "kubeadm": _STAMPED,
    # Else it is a development version, whose state others refuse to read.
    # Source: OpenTofu's version/version.go.
    "tofu": f"{_STRIP} -X github.com/opentofu/opentofu/version.dev=no",
    # Source: cloud-provider-openstack Makefile, LDFLAGS.
    "reference": " ".join(
        [
            _STRIP,
            f"-X {_VERSION_PACKAGE}.gitVersion=v{REFERENCE_VERSION}",
            f"-X {_REFERENCE}/pkg/version.Version=v{REFERENCE_VERSION}",
        ]
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class GoProgram:
    """One program: its group, the module that pins it, its main package.

    built_as: the name `go build` gives it; the package's last element but for etcd.
    """

    name: str
    group: str
    module: str
    package: str
    built_as: str = ""


def _kube(name: str, group: str) -> GoProgram:
    return GoProgram(name, group, "kube", f"k8s.io/kubernetes/cmd/{name}")


def _containerd(name: str) -> GoProgram:
    package = f"github.com/containerd/containerd/v2/cmd/{name}"
    return GoProgram(name, "node", "containerd", package)


def _reference(name: str) -> GoProgram:
    return GoProgram(name, "reference", "reference", f"{_REFERENCE}/cmd/{name}")


def _csi(name: str, module: str, source: str, group: str = "csi") -> GoProgram:
    package = f"github.com/kubernetes-csi/{source}/cmd/{name}"
    return GoProgram(name, group, module, package)


PROGRAMS = (
    GoProgram("etcd", "core", "etcd", "go.etcd.io/etcd/server/v3", "server"),
    _kube("kube-apiserver", "core"),
    _kube("kube-controller-manager", "core"),
    _kube("kubectl", "core"),
    _kube("kube-scheduler", "scheduler"),
    _kube("kubelet", "node"),
    # Apart: modules/kube lacks some of its dependencies.
    GoProgram("kubeadm", "kubeadm", "kubeadm", "k8s.io/kubernetes/cmd/kubeadm"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
    GoProgram("pause", "node", "pause", "mooring/lab/pause"),
    _csi("csi-sanity", "csi", "csi-test/v5", "csi-sanity"),
    _csi("csi-attacher", "csi", "external-attacher/v4"),
    _csi("csi-resizer", "csi", "external-resizer/v2"),
    # Apart: it does not compile against the client-go of the others.
    _csi("csi-provisioner", "csi-provisioner", "external-provisioner/v6"),
    _reference("openstack-cloud-controller-manager"),
    _reference("cinder-csi-plugin"),
    GoProgram("go-templates", "templates", "templates", "mooring/lab/templates"),
    GoProgram("helm", "helm", "helm", "helm.sh/helm/v4/cmd/helm"),
    GoProgram("alerts", "alerts", "alerts", "mooring/lab/alerts"),
    GoProgram("registry", "registry", "registry", "mooring/lab/registry"),
    # Apart from the registry: it needs more modules.
    GoProgram(
        "crane", "crane", "crane", "github.com/google/go-containerregistry/cmd/crane"
    ),
)
GROUPS = frozenset(program.group for program in PROGRAMS)


def in_groups(groups: Collection[str]) -> tuple[GoProgram, ...]:
    """Return the programs of some groups, those of one module next to each other.

    Raises:
        LabError: there is no such group.
    """
    unknown = sorted(set(groups) - GROUPS)
    if unknown:
        raise errors.LabError(
            f"the lab has no programs called {', '.join(unknown)};"
            f" it has {', '.join(sorted(GROUPS))}"
        )
    return tuple(program for program in PROGRAMS if program.group in groups)


def by_name(name: str) -> GoProgram:
    """Return one program; KeyError when the lab has none of that name."""
    return {program.name: program for program in PROGRAMS}[name]


def ldflags(module: str) -> str:
    """Return the linker's flags for the programs of a module."""
    return _LDFLAGS.get(module, _STRIP)


def files(module: str) -> Mapping[str, bytes]:
    """Read the files of a module, by name; from a checkout or from inside a zip."""
    folder = importlib.resources.files("lib.lab.artifacts") / "modules" / module
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def key(contents: Mapping[str, bytes], flags: str, machine: str) -> str:
    """Hash what decides how a module's programs turn out.

    The release of Go that builds them is omitted: go.mod holds the least one, and a
    newer one on the next machine or in the next shell is no reason to wait for
    minutes. contents: the module's files by name.
    """
    mark = hashlib.sha256(f"{flags}\n{machine}\n".encode())
    for name in sorted(contents):
        mark.update(f"{name}\n{len(contents[name])}\n".encode())
        mark.update(contents[name])
    return mark.hexdigest()[:16]


def folder(cache: pathlib.Path, module: str) -> pathlib.Path:
    """Return the folder in which the programs of a module are kept."""
    machine = f"{platform.system()} {platform.machine()}"
    return cache / "bin" / key(files(module), ldflags(module), machine)


def least_go(go_mod: str) -> tuple[int, ...]:
    """Read from a go.mod the least release of Go that builds it: (1, 26, 0).

    Source: Go Modules Reference, go directive.
    """
    match = re.search(r"^go (\d+(?:\.\d+)*)$", go_mod, re.MULTILINE)
    return tuple(map(int, match[1].split("."))) if match else ()
