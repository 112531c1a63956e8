"""What Go makes of our templates for DVP is what our own functions make."""

import copy
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.discovery.dvp import capi, checksums, documents, model, templates
from tests.lab.discovery import go_templates
from tests.lab.discovery.go_templates import Job, Render, texts

CLUSTER = model.ClusterFacts("f49dd1c3-a63a-4565-a06c-625e35587eab", "sea")
BARE: dict[str, Any] = {
    "virtualMachine": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}},
    "rootDisk": {
        "size": "50Gi",
        "image": {"kind": "ClusterVirtualImage", "name": "ubuntu"},
    },
}
FULL: dict[str, Any] = {
    "virtualMachine": {
        "cpu": {"cores": 2, "coreFraction": "50%"},
        "memory": {"size": "4Gi"},
        "virtualMachineClassName": "generic-v1",
        "bootloader": "EFIWithSecureBoot",
        "runPolicy": "AlwaysOn",
        "liveMigrationPolicy": "AlwaysSafe",
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
        "additionalLabels": {"a": "b"},
    },
    "rootDisk": {
        "size": "20Gi",
        "storageClass": "fast",
        "image": {"kind": "VirtualImage", "name": "debian-12"},
    },
    "etcdDisk": {"size": "15Gi", "storageClass": "fast"},
    "additionalDisks": [
        {"size": "10Gi", "storageClass": "slow"},
        {"size": "1Ti", "storageClass": "fast"},
    ],
}
EMPTY_DISKS = {**BARE, "additionalDisks": []}
IN_BYTES = {**BARE, "rootDisk": {**BARE["rootDisk"], "size": 53687091200}}
CLASSES = [BARE, FULL, EMPTY_DISKS, IN_BYTES]
ODD = ["1", "true", "y", "1e3", "08", "on", "null", "a: b", "- a", "2026-01-31", "ж"]
BY_FIELDS = """
{{- $values := dict }}
{{- range $field := .fields }}
  {{- $value := $.class }}
  {{- range $name := splitList "." $field }}
    {{- $value = kindIs "map" $value | ternary (get (default dict $value) $name) "" }}
  {{- end }}
  {{- if $value }}
    {{- $_ := set $values $field $value }}
  {{- end }}
{{- end }}
{{- with .rollout }}
  {{- $_ := set $values "manualRolloutID" . }}
{{- end }}
{{- printf "%s\\n" (toYaml $values | trimSuffix "\\n") | sha256sum -}}
"""
"""The newer formula, in Go. `get` of what is no map is never evaluated to a value."""


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Return Go's template engine with the functions of Helm."""
    return go_templates.engine(tmp_path_factory.mktemp("templates"))


def odd_classes() -> list[dict[str, Any]]:
    """Return classes with texts that need quotes in each hashed place."""
    classes = []
    for value, place in itertools.product(ODD, ("class", "image", "disk", "storage")):
        spec = copy.deepcopy(FULL)
        if place == "class":
            spec["virtualMachine"]["virtualMachineClassName"] = value
        elif place == "image":
            spec["rootDisk"]["image"]["name"] = value
        elif place == "disk":
            spec["additionalDisks"][0]["storageClass"] = value
        else:
            spec["rootDisk"]["storageClass"] = value
        classes.append(spec)
    return classes


def of_helm(name: str, spec: Mapping[str, object], checksum: str = "") -> Job:
    """Return a job of the older generation."""
    data = {
        "Chart": {"Name": "cloud-provider-dvp"},
        "nodeGroup": {"name": "worker", "instanceClass": spec},
        "templateName": "worker-1",
        "instanceClassChecksum": checksum,
    }
    return {"template": templates.text(name), "strict": False, "data": data}


def of_contract(name: str, **data: object) -> Job:
    """Return a job of the newer generation."""
    contract = yaml.safe_load(templates.text(name))
    return {"template": contract["template"], "strict": True, "data": data}


def test_machine_templates_of_both_generations(render: Render) -> None:
    """Every kind of class; the older one has its metadata, too."""
    specs = [documents.instance_class(spec) for spec in (*CLASSES, *odd_classes())]
    new = texts(render(of_contract("template.yaml", instanceClass=s) for s in specs))
    old = texts(render(of_helm("machine-template.yaml", s, "77") for s in specs))
    for spec, text_of_new, text_of_old in zip(specs, new, old, strict=True):
        expected = json.loads(json.dumps(capi.machine_spec(spec)))
        assert yaml.safe_load(text_of_new) == {
            "apiVersion": capi.API_VERSION,
            "kind": capi.TEMPLATE_KIND,
            "spec": {"template": {"spec": expected}},
        }
        document = yaml.safe_load(text_of_old)
        assert document["spec"] == {"template": {"spec": expected}}
        assert document["metadata"] == {
            "name": "worker-1",
            "namespace": "d8-cloud-instance-manager",
            "annotations": {
                "checksum/instance-class": "77",
                "helm.sh/resource-policy": "keep",
            },
            "labels": {
                "heritage": "deckhouse",
                "module": "cloud-provider-dvp",
                "node-group": "worker",
            },
        }
    print(f"{len(specs)} machine templates of each generation alike")


def test_the_cluster(render: Render) -> None:
    """With and without a prefix."""
    for prefix in ("sea", ""):
        (text,) = texts(
            render([of_contract("cluster.yaml", cluster={"prefix": prefix})])
        )
        cluster = model.ClusterFacts(CLUSTER.uuid, prefix)
        assert yaml.safe_load(text) == capi.cluster_object(cluster)


def test_the_older_checksum_with_its_two_mistakes(render: Render) -> None:
    """Go's YAML and ours are one text: nulls, quotes, lists, numbers."""
    specs = [*CLASSES, *odd_classes()]
    rendered = texts(render(of_helm("instance-class.checksum", s) for s in specs))
    for spec, text in zip(specs, rendered, strict=True):
        assert text == checksums.of_old_generation(spec), spec
    print(f"{len(specs)} checksums of the older generation alike")
    print("vectors:", rendered[0], rendered[1])


def test_the_newer_checksum(render: Render) -> None:
    """By the fields of the contract, as Go reads them."""
    fields = yaml.safe_load(templates.text("template.yaml"))["rolloutFields"]
    specs = [spec for spec in (*CLASSES, *odd_classes()) if spec != EMPTY_DISKS]
    cases = list(itertools.product(specs, ("", "7")))
    jobs: list[Job] = [
        {
            "template": BY_FIELDS,
            "strict": False,
            "data": {"fields": fields, "class": spec, "rollout": rollout},
        }
        for spec, rollout in cases
    ]
    rendered = texts(render(jobs))
    for (spec, rollout), text in zip(cases, rendered, strict=True):
        assert text == checksums.by_rollout_fields(spec, rollout), spec
    print(f"{len(cases)} checksums of the newer generation alike")
    print("vectors:", rendered[0], rendered[2])
