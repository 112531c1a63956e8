"""capz starts with the reference's command line, or names all that is wrong.

Prints case and message. A message names flag or variable, and what would be valid.
"""

import pathlib
import sys
from collections.abc import Mapping, Sequence

import pytest
import yaml

from capz import engine_cluster, main
from lib.process import config
from tests.lib.cloud.zvirt.engines import CA

UUID = "5e6f0b5c-2d8f-4a4e-9c53-0d4d9f5a7e10"
OTHER = "11111111-2d8f-4a4e-9c53-0d4d9f5a7e10"
ENV = {
    "ZVIRT_API_URL": "https://engine.example/ovirt-engine/api",
    "ZVIRT_USER": "admin@internal",
    "ZVIRT_PASSWORD": "s3cret",
    "ZVIRT_CONNECT_INSECURE": "false",
    "ZVIRT_CA_BUNDLE": CA,
    "ZVIRT_VM_TAGS": f"cluster-{UUID}",
}
REFERENCE = (
    "--health-probe-bind-address=:8081",
    "--metrics-bind-address=127.0.0.1:8080",
    "--leader-elect",
)
CASES: Mapping[str, tuple[Mapping[str, str], Sequence[str], tuple[str, ...]]] = {
    "no tags": (
        {"ZVIRT_VM_TAGS": ""},
        (),
        ("ZVIRT_VM_TAGS: not set: must be a tag cluster-UUID",),
    ),
    "a tag without UUID": (
        {"ZVIRT_VM_TAGS": "cluster-one"},
        (),
        ('ZVIRT_VM_TAGS: invalid value "cluster-one": must be a tag cluster-UUID',),
    ),
    "two clusters": (
        {"ZVIRT_VM_TAGS": f"cluster-{UUID} cluster-{OTHER}"},
        (),
        ("ZVIRT_VM_TAGS:", "must have one tag cluster-UUID"),
    ),
    "a flag that differs": (
        {},
        (f"--cluster-uuid={OTHER}",),
        (f'--cluster-uuid: invalid value "{OTHER}": must be {UUID}',),
    ),
    "a flag that is no UUID": (
        {},
        ("--cluster-uuid=one",),
        ('--cluster-uuid: invalid value "one": must be a UUID',),
    ),
    "all together": (
        {"ZVIRT_VM_TAGS": "", "ZVIRT_API_URL": "", "ZVIRT_USER": "admin"},
        ("--leader-election-namespace=",),
        (
            "ZVIRT_VM_TAGS: not set",
            "ZVIRT_API_URL: not set",
            'ZVIRT_USER: invalid value "admin"',
            "--leader-election-namespace: not set",
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_named(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variables, arguments, expected = CASES[case]
    for name, value in {**ENV, **variables}.items():
        monkeypatch.setenv(name, value)
    usual = () if case == "all together" else ("--leader-election-namespace=x",)
    monkeypatch.setattr(sys, "argv", ["capz", *usual, *REFERENCE, *arguments])
    with pytest.raises(SystemExit) as exit_:
        main.main()
    shown = capsys.readouterr().err
    print(f"{case}: {shown}")
    assert exit_.value.code == 2
    assert all(text in shown for text in expected)
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("tags", "flag"), [(f"a cluster-{UUID}", ""), ("", UUID), (f"cluster-{UUID}", UUID)]
)
def test_the_cluster_is_named_by_tag_or_flag(tags: str, flag: str) -> None:
    assert engine_cluster.cluster_id({"ZVIRT_VM_TAGS": tags}, flag) == UUID


def test_tags_are_each_named_once() -> None:
    assert engine_cluster.tags({"ZVIRT_VM_TAGS": " a  b a\n"}) == ("a", "b")
    with pytest.raises(config.ConfigError):
        engine_cluster.cluster_id({}, "")


def test_the_kinds_are_those_of_the_crds() -> None:
    kinds = engine_cluster.KINDS
    crds = pathlib.Path("charts/capz/crds")
    for kind in (kinds.machine.machine, kinds.cluster.cluster, kinds.template.template):
        crd = yaml.safe_load((crds / f"{kind.plural}.yaml").read_text())
        assert crd["metadata"]["name"] == f"{kind.plural}.{kind.group}"
        assert crd["spec"]["names"]["kind"] == kind.kind
        versions = [(v["name"], v["storage"]) for v in crd["spec"]["versions"]]
        assert versions == [(kind.version, True), ("v1alpha1", False)]
    assert kinds.cluster.finalizer == ""


def test_a_template_shows_its_node() -> None:
    spec = {"cpu": {"sockets": 2, "cores": 4, "threads": 1}, "memory": 2048}
    shape = engine_cluster.shape(spec)
    assert shape is not None
    assert shape.document()["capacity"] == {"cpu": "8", "memory": "2048Mi"}
    assert engine_cluster.shape({"memory": "many"}) is None
