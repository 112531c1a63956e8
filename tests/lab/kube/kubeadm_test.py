"""The kubeadm configuration of docs/examples is valid for the real kubeadm."""

import pathlib
import subprocess

import pytest

from lib.lab.artifacts import programs
from lib.lab.slots import leases
from tests.harness import testing

FOLDER = pathlib.Path("docs/examples/kubeadm")
CLUSTER, JOIN = (FOLDER / f"{name}.yaml" for name in ("cluster", "join"))
EXTERNAL = "{name: cloud-provider, value: external}"
GROUP = "kubeadm"


@pytest.fixture(scope="module")
def kubeadm(lease: leases.Lease) -> pathlib.Path:
    """Build kubeadm once per machine."""
    programs.build(lease.where, [GROUP], testing.shown())
    return programs.path(lease.where, GROUP)


def validate(kubeadm: pathlib.Path, file: pathlib.Path) -> tuple[int, str]:
    """Return exit code and messages of `kubeadm config validate`."""
    done = subprocess.run(
        [kubeadm, "config", "validate", f"--config={file}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("file", "count"), [(CLUSTER, 2), (JOIN, 1)])
def test_the_example_is_valid(
    kubeadm: pathlib.Path, file: pathlib.Path, count: int
) -> None:
    """kubelets, and kube-controller-manager, have an external cloud provider."""
    code, text = validate(kubeadm, file)
    assert (code, text.splitlines()[-1]) == (0, "ok")
    assert "WARNING" not in text.replace("UnsafeSkipCAVerification", "")
    assert file.read_text().count(EXTERNAL) == count


def test_every_example_is_validated() -> None:
    assert set(FOLDER.glob("*")) == {CLUSTER, JOIN}


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("kubeletExtraArgs", "kubeletExtraArguments", "unknown field"),
        ("10.244.0.0/16", "10.244.0.0.0", "10.244.0.0.0"),
        ("v1beta4", "v1beta9", "v1beta9"),
    ],
)
def test_a_mistake_is_rejected(
    kubeadm: pathlib.Path, tmp_path: pathlib.Path, right: str, wrong: str, message: str
) -> None:
    """kubeadm would report a field of the example that it does not know."""
    text = CLUSTER.read_text()
    assert right in text
    file = tmp_path / "cluster.yaml"
    file.write_text(text.replace(right, wrong))
    code, output = validate(kubeadm, file)
    assert code != 0
    assert message in output
