import itertools
import pathlib
import re

import pytest

from lib.lab import errors
from lib.lab.artifacts import go_modules, go_toolchain

FILES = {"go.mod": b"module a", "go.sum": b"sums"}
MODULES = sorted({program.module for program in go_modules.PROGRAMS})


def test_same_pins_give_the_same_place() -> None:
    """A program that was built is found again."""
    again = dict(reversed(FILES.items()))
    assert go_modules.key(FILES, "-s", "x") == go_modules.key(again, "-s", "x")


@pytest.mark.parametrize(
    ("files", "flags", "machine"),
    [
        pytest.param({**FILES, "go.mod": b"module b"}, "-s", "x", id="another pin"),
        pytest.param({**FILES, "go.sum": b"other"}, "-s", "x", id="another checksum"),
        pytest.param({**FILES, "main.go": b""}, "-s", "x", id="one more file"),
        pytest.param(FILES, "-w", "x", id="other linker flags"),
        pytest.param(FILES, "-s", "y", id="another kind of machine"),
    ],
)
def test_whatever_changes_a_program_changes_its_place(
    files: dict[str, bytes], flags: str, machine: str
) -> None:
    """An old program is never taken for a new one."""
    assert go_modules.key(files, flags, machine) != go_modules.key(FILES, "-s", "x")


def test_programs_are_kept_below_the_cache(tmp_path: pathlib.Path) -> None:
    """Removing the cache removes every program."""
    assert {go_modules.folder(tmp_path, module).parent for module in MODULES} == {
        tmp_path / "bin"
    }


@pytest.mark.parametrize("module", MODULES)
def test_pinned_go_builds_every_module(module: str) -> None:
    """The toolchain we bring is new enough for what we build with it."""
    least = go_modules.least_go(go_modules.files(module)["go.mod"].decode())
    pinned = go_toolchain.parse_version(f"go{go_toolchain.pinned_version()}")
    assert () < least <= pinned


def test_kubernetes_version_is_the_one_in_go_mod() -> None:
    """What the programs say of themselves is what they were built from."""
    go_mod = go_modules.files("kube")["go.mod"].decode()
    assert f"k8s.io/kubernetes v{go_modules.KUBERNETES_VERSION} " in go_mod
    assert f"gitVersion=v{go_modules.KUBERNETES_VERSION} " in go_modules.ldflags("kube")


def test_reference_version_is_the_one_in_go_mod() -> None:
    """The reference's programs say of themselves what they were built from."""
    go_mod = go_modules.files("reference")["go.mod"].decode()
    version = f"v{go_modules.REFERENCE_VERSION}"
    assert f"k8s.io/cloud-provider-openstack {version} " in go_mod
    assert f"version.Version={version}" in go_modules.ldflags("reference")


def test_the_reference_shares_its_packages_with_kubernetes() -> None:
    """What both modules pin has one version, so that it is compiled once."""
    kube, reference = (_pins(name) for name in ("kube", "reference"))
    # CSI's messages, which only one program of each needs; and a thing of Windows.
    own = {
        "github.com/Azure/go-ansiterm",
        "github.com/container-storage-interface/spec",
    }
    assert {
        module: (version, kube[module])
        for module, version in reference.items()
        if module not in own and kube.get(module, version) != version
    } == {}


def _pins(module: str) -> dict[str, str]:
    """Return the version that is built of each Go module, by its path."""
    text = go_modules.files(module)["go.mod"].decode()
    required = re.findall(r"^\t(\S+) (v\S+) // indirect", text, re.MULTILINE)
    replaced = re.findall(r"^\t(\S+) => \S+ (v\S+)", text, re.MULTILINE)
    return {**dict(required), **dict(replaced)}


@pytest.mark.parametrize(
    ("program", "pin"),
    [
        ("csi-sanity", "csi-test/v5 v5.6.0"),
        ("csi-provisioner", "external-provisioner/v6 v6.3.0"),
        ("csi-attacher", "external-attacher/v4 v4.13.0"),
        ("csi-resizer", "external-resizer/v2 v2.3.0"),
    ],
)
def test_programs_of_csi_are_the_releases_we_name(program: str, pin: str) -> None:
    """The README of csi-controller says what was run."""
    module = go_modules.by_name(program).module
    go_mod = go_modules.files(module)["go.mod"].decode()
    assert f"github.com/kubernetes-csi/{pin} " in go_mod


def test_helm_is_the_release_we_name() -> None:
    """The charts say that helm 4 was run."""
    go_mod = go_modules.files("helm")["go.mod"].decode()
    assert "\thelm.sh/helm/v4 v4.3.1 " in go_mod


def test_programs_of_one_module_are_neighbours() -> None:
    """Each module of a group is built in one go, so shared packages compile once."""
    for group in go_modules.GROUPS:
        runs = itertools.groupby(
            go_modules.in_groups([group]), lambda program: program.module
        )
        modules = [module for module, _ in runs]
        assert len(modules) == len(set(modules))


def test_unknown_group_is_refused_by_name() -> None:
    """A typing error does not pass for nothing to do."""
    with pytest.raises(errors.LabError, match="called cor; it has alerts, core"):
        go_modules.in_groups(["cor"])
