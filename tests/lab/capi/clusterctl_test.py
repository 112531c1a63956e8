"""clusterctl itself reads the components: names, images, metadata, variables.

No cluster and no network is needed: the repository is a folder.
"""

import os
import pathlib
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.lab.artifacts import go_modules
from lib.lab.capi import clusterctl_program, core_program
from lib.lab.charts import clusterctl as clusterctl_file
from lib.lab.slots import leases
from tests.harness import testing

SOURCE = pathlib.Path("charts/capdvp/clusterctl")
VARIABLES = {
    "CLUSTER_UUID": "0badc0de-0000-4000-8000-000000000001",
    "DVP_KUBECONFIG_SECRET": "parent",
    "DVP_NAMESPACE": "project",
}
Json = dict[str, Any]


class Clusterctl:
    """clusterctl with a repository of this provider. overridden: its configuration."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path) -> None:
        self._program, self._folder = program, folder
        series = yaml.safe_load((SOURCE / "metadata.yaml").read_text())
        last = series["releaseSeries"][-1]
        self.version = f"v{last['major']}.{last['minor']}.0"
        self.release = folder / "infrastructure-dvp" / self.version
        self.release.mkdir(parents=True)
        for file in SOURCE.glob("*.yaml"):
            (self.release / file.name).write_bytes(file.read_bytes())

    def generate(
        self, *words: str, variables: Mapping[str, str] | None = None, **more: object
    ) -> "subprocess.CompletedProcess[str]":
        """Run `clusterctl generate provider`. more: of the configuration."""
        url = (self.release / "infrastructure-components.yaml").as_uri()
        provider = {"name": "dvp", "url": url, "type": "InfrastructureProvider"}
        config = self._folder / "clusterctl.yaml"
        known = VARIABLES if variables is None else variables
        whole = {"providers": [provider], **known, **more}
        config.write_text(yaml.safe_dump(whole))
        command = [str(self._program), "generate", "provider", f"--config={config}"]
        command += [f"--infrastructure=dvp:{self.version}", *words]
        env = {
            "HOME": str(self._folder),
            "PATH": os.environ["PATH"],
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
        }
        return subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=120
        )

    def documents(self, *words: str, **more: object) -> list[Json]:
        """Return the objects that clusterctl would create."""
        done = self.generate(*words, **more)  # type: ignore[arg-type]
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]


@pytest.fixture()
def clusterctl(lease: leases.Lease, tmp_path: pathlib.Path) -> Clusterctl:
    place = lease.apart("clusterctl", 0)
    clusterctl_program.PROGRAM.build(place, testing.shown())
    return Clusterctl(clusterctl_program.PROGRAM.path(place), tmp_path)


def deployment(documents: list[Json]) -> Json:
    (document,) = (each for each in documents if each["kind"] == "Deployment")
    spec: Json = document["spec"]["template"]["spec"]
    return spec


def test_clusterctl_accepts_the_components(clusterctl: Clusterctl) -> None:
    """Every object has the provider's label and, if namespaced, one namespace."""
    documents = clusterctl.documents()
    kinds = [each["kind"] for each in documents]
    print(sorted(kinds))
    assert kinds.count("Namespace") == 1
    assert kinds.count("CustomResourceDefinition") == 4
    for each in documents:
        labels = each["metadata"]["labels"]
        assert labels["cluster.x-k8s.io/provider"] == "infrastructure-dvp"
        assert "clusterctl.cluster.x-k8s.io" in labels
    assert "${" not in yaml.safe_dump_all(documents)


def test_another_namespace_is_that_of_all_objects(clusterctl: Clusterctl) -> None:
    """Also of subjects of bindings: otherwise the program would have no rights."""
    documents = clusterctl.documents("--target-namespace=elsewhere")
    text = yaml.safe_dump_all(documents)
    assert "capdvp-system" not in text
    spaces = {each["metadata"].get("namespace") for each in documents}
    print(spaces)
    assert "elsewhere" in spaces


def test_the_image_is_overridden_in_the_container_called_manager(
    clusterctl: Clusterctl,
) -> None:
    """By repository and tag of clusterctl's configuration."""
    images = {"infrastructure-dvp": {"repository": "mirror.invalid/m", "tag": "v2"}}
    (container,) = deployment(clusterctl.documents(images=images))["containers"]
    print(container["name"], container["image"])
    assert (container["name"], container["image"]) == (
        "manager",
        "mirror.invalid/m/capdvp:v2",
    )


def test_the_provider_is_described_without_variables(clusterctl: Clusterctl) -> None:
    """Commands that replace no variable read the image: it must be one."""
    done = clusterctl.generate("--describe", variables={})
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert f"{clusterctl_file.REGISTRY}/capdvp:" in done.stdout
    for name in VARIABLES:
        assert name in done.stdout


def test_the_components_are_printed_without_variables(clusterctl: Clusterctl) -> None:
    """As they are stored."""
    done = clusterctl.generate("--raw", variables={})
    assert done.returncode == 0, done.stderr
    assert "${DVP_NAMESPACE}" in done.stdout


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_variable_without_a_value_is_named(clusterctl: Clusterctl, name: str) -> None:
    rest = {key: value for key, value in VARIABLES.items() if key != name}
    done = clusterctl.generate(variables=rest)
    print(done.stderr.strip())
    assert done.returncode != 0
    assert name in done.stderr


def test_a_release_without_its_contract_is_refused(clusterctl: Clusterctl) -> None:
    """clusterctl reads metadata.yaml: the check above is one of it."""
    file = clusterctl.release / "metadata.yaml"
    file.write_text(file.read_text().replace("minor: 1", "minor: 7"))
    done = clusterctl.generate()
    print(done.stderr.strip())
    assert done.returncode != 0


def test_its_version_is_that_of_the_core() -> None:
    """And both are built from one release of Cluster API."""
    pattern = re.compile(rf"{re.escape(clusterctl_program.MODULE)} (v\S+)")
    versions = set()
    for module in (core_program.NAME, "clusterctl"):
        text = go_modules.files(module)["go.mod"].decode()
        versions |= set(pattern.findall(text))
    print(versions)
    assert len(versions) == 1
