"""Reading an OpenStackDeployment: bad input, references to Secrets, layers."""

import copy
from typing import Any

import pytest

from lib.osdpl.api import references, spec
from lib.osdpl.values import layers
from lib.process import config
from tests.lib.osdpl import samples

REF = {"value_from": {"secret_key_ref": {"name": "certificates", "key": "ca"}}}

BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("unknown field", {"featurs": {}}, "spec.featurs", "features"),
    (
        "unknown nested field",
        {"features": {"nova": {"disk": "x"}}},
        ".nova.disk",
        "known",
    ),
    (
        "wrong version",
        {"openstack_version": "zed"},
        "spec.openstack_version",
        "gazpacho",
    ),
    ("wrong preset", {"preset": "big"}, "spec.preset", "core"),
    ("wrong size", {"size": "huge"}, "spec.size", "tiny"),
    ("empty name", {"public_domain_name": ""}, "public_domain_name", "not empty"),
    ("wrong type", {"draft": "yes"}, "spec.draft", "a boolean (this is a string)"),
    ("list for object", {"services": []}, "spec.services", "an object"),
    (
        "unknown service",
        {"features": {"services": ["blob"]}},
        "spec.features.services[0]",
        "compute",
    ),
    (
        "number for a secret",
        {"features": {"ssl": {"public_endpoints": {"api_key": 5}}}},
        "spec.features.ssl.public_endpoints.api_key",
        "secret_key_ref",
    ),
    (
        "incomplete reference",
        {"features": {"stacklight": {"user": {"password": {"value_from": {}}}}}},
        "spec.features.stacklight.user.password",
        "secret_key_ref",
    ),
    (
        "malformed digest",
        {"common": {"infra": {"releases": {"etcd": {"digest": "abc"}}}}},
        "spec.common.infra.releases.etcd.digest",
        "sha256:",
    ),
    (
        "repository without URL",
        {"common": {"charts": {"repositories": [{"name": "x"}]}}},
        "spec.common.charts.repositories[0].url",
        "required",
    ),
]


@pytest.mark.parametrize(
    ("changes", "field", "expected"), [row[1:] for row in BAD], ids=[r[0] for r in BAD]
)
def test_bad_input_names_the_field(
    changes: dict[str, Any], field: str, expected: str
) -> None:
    document = copy.deepcopy(samples.DOCUMENT)
    document["spec"].update(changes)

    with pytest.raises(config.ConfigError) as caught:
        spec.parse(document)

    lines = [str(problem) for problem in caught.value.problems]
    assert any(field in line and expected in line for line in lines), lines


@pytest.mark.parametrize(
    "field", ["openstack_version", "preset", "size", "public_domain_name"]
)
def test_required_fields(field: str) -> None:
    document = copy.deepcopy(samples.DOCUMENT)
    del document["spec"][field]

    with pytest.raises(
        config.ConfigError, match=f"spec.{field}: invalid value: must be .* required"
    ):
        spec.parse(document)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "kind"),
        ({**samples.DOCUMENT, "kind": "Pod"}, 'kind: invalid value "Pod"'),
        ({**samples.DOCUMENT, "apiVersion": "v1"}, "apiVersion"),
        ({**samples.DOCUMENT, "metadata": {}}, "metadata.name"),
        ({**samples.DOCUMENT, "spec": None}, "spec"),
        ({**samples.DOCUMENT, "spec": "text"}, "spec"),
    ],
)
def test_documents_that_are_refused(document: dict[str, Any], field: str) -> None:
    with pytest.raises(config.ConfigError, match=field):
        spec.parse(document)


def test_secrets_are_not_shown() -> None:
    document = copy.deepcopy(samples.DOCUMENT)
    document["spec"]["features"]["ssl"] = {
        "public_endpoints": {"ca_cert": ["s3cret"], "api_cert": "", "api_key": 31337}
    }
    document["spec"]["features"]["stacklight"] = {"user": {"password": 31337}}
    with pytest.raises(config.ConfigError) as caught:
        spec.parse(document)

    assert "31337" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


SERVICES: list[tuple[str, Any, str]] = [
    ("unknown service", {"blob": {}}, "spec.services.blob"),
    ("unknown chart", {"identity": {"keyston": {}}}, "spec.services.identity.keyston"),
    ("no object", {"identity": "x"}, "spec.services.identity"),
    ("no values", {"identity": {"keystone": {"pod": {}}}}, "identity.keystone"),
    ("values of a wrong type", {"identity": {"keystone": {"values": 1}}}, "keystone"),
    ("type of the size", {"etcd": 1}, "spec.services.etcd"),
]


@pytest.mark.parametrize(
    ("services", "field"), [row[1:] for row in SERVICES], ids=[r[0] for r in SERVICES]
)
def test_bad_overrides_name_the_path(services: dict[str, Any], field: str) -> None:
    deployment = spec.parse(samples.document(services=services))

    with pytest.raises(config.ConfigError, match=field):
        layers.effective(deployment.spec)


def test_conflict_with_a_layer_names_path_and_types() -> None:
    values = {"pod": {"replicas": {"api": "three"}}}
    services = {"identity": {"keystone": {"values": values}}}
    deployment = spec.parse(samples.document(services=services))

    with pytest.raises(config.ConfigError) as caught:
        layers.effective(deployment.spec)

    path = "spec.services.identity.keystone.values.pod.replicas.api"
    assert path in str(caught.value)
    assert "number" in str(caught.value)
    assert "string" in str(caught.value)


def test_references_are_replaced() -> None:
    tree = {"a": {"b": REF}, "list": [{"c": REF}, "text"]}
    observed = references.find(tree)

    assert [(item.path, item.secret, item.key) for item in observed] == [
        ("spec.a.b", "certificates", "ca"),
        ("spec.list[0].c", "certificates", "ca"),
    ]
    replaced = references.substitute(tree, {"certificates": {"ca": b"CERT"}})
    assert replaced == {"a": {"b": "CERT"}, "list": [{"c": "CERT"}, "text"]}
    assert tree["a"] == {"b": REF}


MISSING: list[tuple[str, references.Secrets, str]] = [
    (
        "no Secret",
        {"certificates": None},
        "certificates: invalid value: must be an existing Secret",
    ),
    ("no key", {"certificates": {"other": b"s3cret"}}, "a key of Secret certificates"),
    ("no text", {"certificates": {"ca": b"\xff\xfes3cret"}}, "UTF-8"),
]


@pytest.mark.parametrize(
    ("secrets", "message"), [row[1:] for row in MISSING], ids=[r[0] for r in MISSING]
)
def test_missing_references_name_path_secret_and_key(
    secrets: references.Secrets, message: str
) -> None:
    with pytest.raises(config.ConfigError) as caught:
        references.substitute({"a": REF}, secrets)

    text = str(caught.value)
    assert text.startswith("spec.a.value_from.secret_key_ref")
    assert message in text
    assert "s3cret" not in text


def test_deployment_is_read() -> None:
    deployment = spec.parse(samples.document(draft=True))

    assert (deployment.name, deployment.namespace) == ("cloud", "openstack")
    assert deployment.is_draft
    assert "ens3" not in repr(deployment)
