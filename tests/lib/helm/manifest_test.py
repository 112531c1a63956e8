"""Objects of manifests, as YAML and as JSON."""

import json

import pytest
import yaml

from lib.helm import manifest

DOCUMENTS = (
    {"kind": "Job", "metadata": {"name": "bootstrap"}},
    {"kind": "CronJob", "metadata": {"name": "rotate"}, "spec": {"kind": "Job"}},
    {"kind": "Deployment", "metadata": {"name": "api"}},
    {"kind": "ConfigMap", "metadata": {"name": "bin"}, "data": {"a": "kind: Job\n"}},
)


def as_json() -> str:
    return "".join(f"---\n{json.dumps(item, indent=1)}\n" for item in DOCUMENTS)


def as_yaml() -> str:
    return "".join(f"---\n# Source: x\n{yaml.safe_dump(item)}" for item in DOCUMENTS)


@pytest.mark.parametrize("text", [as_json(), as_yaml()], ids=["json", "yaml"])
def test_objects_by_kind(text: str) -> None:
    assert manifest.names(text, ("Job",)) == (("Job", "bootstrap"),)
    observed = manifest.names(text, ("Deployment", "CronJob"))
    assert observed == (("CronJob", "rotate"), ("Deployment", "api"))
    assert manifest.names(text, ("DaemonSet",)) == ()


def test_a_manifest_without_objects() -> None:
    assert manifest.names("", ("Job",)) == ()
    assert manifest.names("---\n# Source: x\n", ("Job",)) == ()
