"""docs/how-to/deploy-openstack.md, followed command by command."""

import pathlib
import subprocess
import sys
from collections.abc import Mapping

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.kube import control_plane
from lib.lab.osdpl import deployment
from lib.process import certificates, clock
from tests.harness.docs import pages
from tests.harness.osdpl.stage import OperatorStage

PAGE = pathlib.Path("docs/how-to/deploy-openstack.md")
EXAMPLE = pathlib.Path("docs/examples/osdpl/tiny.yaml")
LIMIT_S = 900


def written(folder: pathlib.Path, source: str) -> None:
    """Write the object as a reader does, and the certificate that it refers to."""
    text = EXAMPLE.read_text()
    for old, new in {
        "https://charts.example.com/openstack-helm": source,
        "storage_class: standard": f"storage_class: {deployment.STORAGE_CLASS}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "cloud.yaml").write_text(text)
    now = clock.utc_now()
    pair = certificates.self_signed(["*.cloud.example.com"], now)
    for name, content in {
        "ca.crt": pair.certificate,
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
    }.items():
        (folder / name).write_bytes(content)


def shell(folder: pathlib.Path, where: places.Places) -> Mapping[str, str]:
    """Return the environment of a user: kubectl, helm, the tool, and the cluster."""
    programs_ = folder / "bin"
    programs_.mkdir()
    for name in ("kubectl", "helm"):
        (programs_ / name).symlink_to(programs.path(where, name))
    (programs_ / "mooring").symlink_to(pexes.beside("mooring").absolute())
    (programs_ / "python3.11").symlink_to(sys.executable)
    return {
        "HOME": str(folder),
        "PATH": f"{programs_}:/usr/bin:/bin",
        "KUBECONFIG": str(control_plane.admin_kubeconfig(where)),
        "PEX_ROOT": str(where.state / "pex"),
    }


def test_the_page_leads_to_a_password_of_the_administrator(
    site: OperatorStage, source: str, tmp_path: pathlib.Path
) -> None:
    """Each command succeeds; one of them waits until all workloads are Ready."""
    written(tmp_path, source)
    env = shell(tmp_path, site.where)
    output = ""
    for block in pages.blocks(PAGE):
        for command in block.commands():
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=tmp_path,
                env=dict(env),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            output = done.stdout
            print(f"$ {command}\n{output}")
            assert done.returncode == 0, command
    assert '"username": "admin' in output
    assert '"password": "' in output
