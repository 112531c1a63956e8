"""What is read of the services, and what comes of a service that fails."""

import collections
import dataclasses
import json
import types
import urllib.parse
from typing import Any, cast

import keystoneauth1.discover
import keystoneauth1.session
import pytest

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.catalog import offers
from lib.cloud.openstack.http import client

CLUSTER = "cluster-1"
MARK = {"cinder.csi.openstack.org/cluster": CLUSTER}
GIVEN = {"zones": ["az1"], "instances": {"imageName": "ubuntu", "mainNetwork": "net"}}
FLAVOR = {"id": "1", "name": "m1", "ram": 1024, "vcpus": 1, "disk": 0}


def page(kind: str, *items: object) -> dict[str, object]:
    return {kind: list(items)}


class Session:
    """Stands in for keystoneauth's session: one answer per path, or several in turn."""

    def __init__(self) -> None:
        self.auth = None
        self.timeout = 30.0
        self.calls: list[tuple[str, dict[str, list[str]]]] = []
        self.answers: dict[str, Any] = {
            "compute/flavors/detail": page(
                "flavors", {**FLAVOR, "OS-FLV-EXT-DATA:ephemeral": 7}
            ),
            "compute/os-availability-zone": page(
                "availabilityZoneInfo",
                {"zoneName": "a", "zoneState": {"available": True}},
                {"zoneName": "b", "zoneState": {"available": False}},
            ),
            "compute/os-server-groups": collections.deque(
                [page("server_groups", {"id": "1", "name": "g"}), page("server_groups")]
            ),
            "network/networks": page(
                "networks",
                {"id": "1", "name": "net"},
                {"id": "2", "name": ""},
                {"id": "3", "name": "net"},
                {"id": "4", "name": "сеть"},
            ),
            "network/security-groups": page(
                "security_groups", {"id": "1", "name": "default"}
            ),
            "image/images": page(
                "images",
                {"id": "1", "name": "ubuntu", "created_at": "2026-01-01T00:00:00Z"},
                {"id": "2", "name": "ubuntu", "created_at": "2025-01-01T00:00:00Z"},
                {"id": "3", "name": None, "created_at": "2025-01-01T00:00:00Z"},
            ),
            "block-storage/types": page(
                "volume_types",
                {"id": "1", "name": "fast", "is_public": True, "description": None},
                {
                    "id": "2",
                    "name": "slow",
                    "extra_specs": {"a": "b"},
                    "qos_specs_id": "q",
                    "description": "d",
                },
            ),
            "block-storage/types/default": {"volume_type": {"id": "2"}},
            "block-storage/volumes/detail": page(
                "volumes",
                {
                    "id": "v1",
                    "name": "pvc-1",
                    "metadata": MARK,
                    "created_at": "2026-01-01T00:00:00.000000",
                },
                {"id": "v2", "name": "foreign", "metadata": {}},
            ),
        }

    def get_endpoint_data(
        self, *, service_type: str, **rest: object
    ) -> keystoneauth1.discover.EndpointData:
        del rest
        return keystoneauth1.discover.EndpointData(
            service_url=f"http://cloud/{service_type}", api_version=(3, 0)
        )

    def request(self, url: str, method: str, **rest: object) -> object:
        del method, rest
        split = urllib.parse.urlsplit(url)
        path = split.path.strip("/")
        self.calls.append((path, urllib.parse.parse_qs(split.query)))
        answer = self.answers[path]
        if isinstance(answer, collections.deque):
            answer = answer.popleft()
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        return types.SimpleNamespace(
            status_code=status, content=json.dumps(body).encode(), headers={}
        )

    def paths(self) -> list[str]:
        return sorted(path for path, _ in self.calls)


@pytest.fixture()
def session() -> Session:
    return Session()


@pytest.fixture()
def cloud(session: Session) -> offers.OpenStackCatalog:
    native = cast(keystoneauth1.session.Session, session)
    where = client.Where("RegionOne", "public")
    effects = client.Effects(sleep=lambda seconds: None)
    api = client.Client(native, where, lambda *message: None, effects)
    return offers.OpenStackCatalog(api)


def document(reading: catalog.CatalogReading) -> dict[str, Any]:
    assert isinstance(reading.document, Seen), reading.document
    config: dict[str, Any] = json.loads(reading.document.value.body)
    return config


def request(*parts: CatalogPart) -> catalog.CatalogRequest:
    return catalog.CatalogRequest(frozenset(parts), GIVEN, CLUSTER)


def test_the_document_in_its_newest_shape(cloud: offers.OpenStackCatalog) -> None:
    result = document(cloud.read(request(CatalogPart.DOCUMENT)))
    assert list(result.items()) == [
        ("apiVersion", "deckhouse.io/v1alpha1"),
        ("kind", "OpenStackCloudProviderDiscoveryData"),
        ("flavors", ["m1"]),
        ("additionalNetworks", ["net", "сеть"]),
        ("additionalSecurityGroups", ["default"]),
        ("defaultImageName", "ubuntu"),
        ("images", ["ubuntu"]),
        ("mainNetwork", "net"),
        ("zones", ["az1"]),
        (
            "volumeTypes",
            [
                {"id": "1", "name": "fast", "isPublic": True},
                {
                    "id": "2",
                    "name": "slow",
                    "description": "d",
                    "extraSpecs": {"a": "b"},
                    "qosSpecID": "q",
                    "isDefault": True,
                },
            ],
        ),
        ("serverGroups", ["g"]),
        ("flavorsDetails", [{"name": "m1", "ram": 1024, "vcpus": 1, "disk": 0}]),
        (
            "imagesDetails",
            [{"id": "1", "name": "ubuntu", "createdAt": "2026-01-01T00:00:00Z"}],
        ),
    ]


def test_everything_at_once_reads_each_list_once(
    cloud: offers.OpenStackCatalog, session: Session
) -> None:
    reading = cloud.read(request(*CatalogPart))
    read = {*session.answers} - {"compute/os-availability-zone"}
    # The list of server groups ends with an empty page.
    assert session.paths() == sorted([*read, "compute/os-server-groups"])
    assert reading.conditions == Seen(())
    assert reading.instance_types == Seen((catalog.InstanceType("m1", 1, 1024, 7),))
    assert reading.storage_types == Seen(
        (catalog.StorageType("fast", "1"), catalog.StorageType("slow", "2"))
    )


def test_parts_not_asked_for_cost_nothing(
    cloud: offers.OpenStackCatalog, session: Session
) -> None:
    reading = cloud.read(request(CatalogPart.STORAGE_TYPES))
    assert session.paths() == ["block-storage/types"]
    assert reading.document is None
    assert cloud.read(request()) == catalog.CatalogReading()


def test_zones_that_take_servers_stand_in_for_none_given(
    cloud: offers.OpenStackCatalog,
) -> None:
    asked = dataclasses.replace(request(CatalogPart.DOCUMENT), installer_document={})
    assert document(cloud.read(asked))["zones"] == ["a"]


def test_volumes_are_asked_for_by_the_mark_and_looked_at_once_more(
    cloud: offers.OpenStackCatalog, session: Session
) -> None:
    """A Cinder that ignores the filter gives foreign ones, too."""
    observation = cloud.read(request(CatalogPart.VOLUMES)).volumes
    assert isinstance(observation, Seen)
    assert [volume.id for volume in observation.value] == ["v1"]
    assert str(observation.value[0].created) == "2026-01-01 00:00:00+00:00"
    ((_, query),) = session.calls
    assert json.loads(query["metadata"][0]) == MARK


def test_pages_of_images_follow_each_other(
    cloud: offers.OpenStackCatalog, session: Session
) -> None:
    row = {"id": "1", "name": "a", "created_at": "t"}
    two = {"id": "2", "name": "b", "created_at": "t"}
    session.answers["image/images"] = collections.deque(
        [{"images": [row], "next": "/v2/images?limit=1&marker=1"}, {"images": [two]}]
    )
    assert document(cloud.read(request(CatalogPart.DOCUMENT)))["images"] == ["a", "b"]
    asked = [query.get("marker") for path, query in session.calls if "image" in path]
    assert asked == [None, ["1"]]


@pytest.mark.parametrize(
    ("body", "observed"),
    [
        ({"NeutronError": {"type": "HTTPNotFound"}}, True),
        ("a proxy's page", False),
    ],
)
def test_a_neutron_without_security_groups(
    cloud: offers.OpenStackCatalog, session: Session, body: object, observed: bool
) -> None:
    session.answers["network/security-groups"] = (404, body)
    reading = cloud.read(request(CatalogPart.DOCUMENT))
    if observed:
        assert document(reading)["additionalSecurityGroups"] == []
    else:
        assert isinstance(reading.document, Unknown)


@pytest.mark.parametrize("status", [403, 404])
def test_no_default_type_is_no_failure(
    cloud: offers.OpenStackCatalog, session: Session, status: int
) -> None:
    session.answers["block-storage/types/default"] = (status, {"itemNotFound": {}})
    types_ = document(cloud.read(request(CatalogPart.DOCUMENT)))["volumeTypes"]
    assert not any("isDefault" in row for row in types_)


SERVICES = {
    "compute": {CatalogPart.INSTANCE_TYPES, CatalogPart.DOCUMENT},
    "network": {CatalogPart.DOCUMENT},
    "image": {CatalogPart.DOCUMENT},
    "block-storage": {
        CatalogPart.DOCUMENT,
        CatalogPart.VOLUMES,
        CatalogPart.STORAGE_TYPES,
    },
}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_fails_takes_only_its_own_parts_along(
    cloud: offers.OpenStackCatalog, session: Session, service: str
) -> None:
    for path in session.answers:
        if path.startswith(f"{service}/"):
            session.answers[path] = (500, {})
    reading = cloud.read(request(*CatalogPart))
    parts = {
        CatalogPart.CONDITIONS: reading.conditions,
        CatalogPart.INSTANCE_TYPES: reading.instance_types,
        CatalogPart.DOCUMENT: reading.document,
        CatalogPart.VOLUMES: reading.volumes,
        CatalogPart.STORAGE_TYPES: reading.storage_types,
    }
    failed = {
        part for part, observation in parts.items() if isinstance(observation, Unknown)
    }
    assert failed == SERVICES[service]


EMPTY = [
    ("compute/flavors/detail", "flavors", "list flavors"),
    ("image/images", "images", "list images"),
    ("block-storage/types", "volume_types", "list volume types"),
]


@pytest.mark.parametrize(("path", "kind", "operation"), EMPTY)
def test_an_empty_list_of_what_every_cloud_has_is_a_wrong_answer(
    cloud: offers.OpenStackCatalog,
    session: Session,
    path: str,
    kind: str,
    operation: str,
) -> None:
    session.answers[path] = page(kind)
    observation = cloud.read(request(CatalogPart.DOCUMENT)).document
    assert isinstance(observation, Unknown)
    assert observation.error.operation == operation


def test_an_input_document_of_another_shape_is_told_by_field(
    cloud: offers.OpenStackCatalog, session: Session
) -> None:
    asked = catalog.CatalogRequest(frozenset({CatalogPart.DOCUMENT}), {"zones": "az1"})
    observation = cloud.read(asked).document
    assert isinstance(observation, Unknown)
    assert isinstance(observation.error, errors.InvalidRequest)
    assert "$.zones" in str(observation.error)
    assert session.calls == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"volume_type": {"id": "1", "name": "fast"}}, Seen(True)),
        ((404, {"itemNotFound": {"message": "gone", "code": 404}}), Seen(False)),
        ((403, {"forbidden": {"message": "no", "code": 403}}), errors.Forbidden),
        ((503, {}), errors.Unavailable),
        ({"no": "type"}, errors.Unavailable),
    ],
)
def test_a_storage_type_is_absent_only_when_cinder_answers_404(
    cloud: offers.OpenStackCatalog, session: Session, answer: object, expected: object
) -> None:
    session.answers["block-storage/types/1"] = answer
    unknown = cloud.has_storage_type("1")
    if isinstance(unknown, Unknown):
        assert type(unknown.error) is expected
    else:
        assert unknown == expected


def test_the_id_of_a_type_is_quoted(
    cloud: offers.OpenStackCatalog, session: Session
) -> None:
    """It comes from an annotation, which others may write."""
    session.answers["block-storage/types/..%2Fvolumes"] = (
        404,
        {"itemNotFound": {"message": "gone", "code": 404}},
    )
    assert cloud.has_storage_type("../volumes") == Seen(False)


def test_volumes_in_creation(cloud: offers.OpenStackCatalog, session: Session) -> None:
    session.answers["block-storage/volumes/detail"] = page(
        "volumes",
        *(
            {"id": status, "name": "pvc", "status": status, "metadata": MARK}
            for status in ("creating", "downloading", "available", "error", "in-use")
        ),
    )
    reading = cloud.read(request(CatalogPart.VOLUMES))
    assert isinstance(reading.volumes, Seen)
    in_creation = {
        catalog_volume.id
        for catalog_volume in reading.volumes.value
        if catalog_volume.is_in_creation
    }
    assert in_creation == {"creating", "downloading"}
