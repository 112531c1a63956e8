"""discovery-data.json is judged by its schema, in words that name the field."""

import copy

import pytest

from lib.discovery.openstack import schemas

GOOD: dict[str, object] = {
    "apiVersion": "deckhouse.io/v1alpha1",
    "kind": "OpenStackCloudProviderDiscoveryData",
    "additionalNetworks": [],
    "additionalSecurityGroups": [],
    "defaultImageName": "ubuntu",
    "flavors": ["m1.large", "Большой"],
    "flavorsDetails": [{"name": "m1.large", "ram": 8192, "vcpus": 4, "disk": 0}],
    "images": ["ubuntu"],
    "imagesDetails": [
        {
            "id": "1",
            "name": "ubuntu",
            "createdAt": "2026-01-31T12:00:00Z",
            "defaultVolumeType": "ssd",
        }
    ],
    "mainNetwork": "shared",
    "serverGroups": ["masters"],
    "volumeTypes": [
        {
            "id": "1",
            "name": "ssd",
            "description": "",
            "extraSpecs": {"volume_backend_name": "a"},
            "isPublic": True,
            "isDefault": True,
            "qosSpecID": "2",
        }
    ],
    "zones": ["nova"],
    "somethingNew": {"a": 1},
}
REQUIRED = (
    "additionalNetworks",
    "additionalSecurityGroups",
    "apiVersion",
    "defaultImageName",
    "flavors",
    "images",
    "kind",
    "mainNetwork",
    "volumeTypes",
    "zones",
)
DISCOVERY_DATA = schemas.Schema.DISCOVERY_DATA


def told(document: object) -> list[str]:
    return [str(problem) for problem in schemas.problems(DISCOVERY_DATA, document)]


def test_the_newest_shape_is_accepted() -> None:
    """Every known field, and one that is not known yet."""
    assert told(GOOD) == []


def test_each_required_field_is_missed_by_name() -> None:
    """A document without anything names them all, once each."""
    expected = [f"{name}: not set" for name in REQUIRED]
    assert told({}) == expected


BAD: list[tuple[str, object, str]] = [
    (
        "apiVersion",
        "v1",
        'apiVersion: invalid value "v1": must be deckhouse.io/v1alpha1',
    ),
    (
        "kind",
        "X",
        'kind: invalid value "X": must be OpenStackCloudProviderDiscoveryData',
    ),
    (
        "additionalNetworks",
        None,
        'additionalNetworks: invalid value "null": must be a list (this is',
    ),
    (
        "additionalNetworks",
        [""],
        'additionalNetworks[0]: invalid value "": must be a text of at least 1 char',
    ),
    (
        "additionalSecurityGroups",
        [1],
        'additionalSecurityGroups[0]: invalid value "1": must be a str',
    ),
    (
        "defaultImageName",
        "",
        'defaultImageName: invalid value "": must be a text of at least 1 character',
    ),
    ("flavors", [], "flavors: invalid value: must be a list of at least 1 item"),
    (
        "flavors",
        ["a", "a"],
        'flavors: invalid value: must be a list of unique items (repeated: "a")',
    ),
    (
        "flavorsDetails",
        [{"name": "a"}],
        "flavorsDetails[0].disk: not set",
    ),
    ("images", [], "images: invalid value: must be a list of at least 1 item"),
    (
        "images",
        "ubuntu",
        'images: invalid value "ubuntu": must be a list (this is a string)',
    ),
    (
        "imagesDetails",
        [{"id": "1", "name": "a", "createdAt": "today"}],
        (
            'imagesDetails[0].createdAt: invalid value "today": must be a time as in'
            " RFC 3339"
        ),
    ),
    (
        "mainNetwork",
        {"name": "x"},
        "mainNetwork: invalid value: must be a string",
    ),
    (
        "serverGroups",
        [None],
        'serverGroups[0]: invalid value "null": must be a string (this is null)',
    ),
    (
        "volumeTypes",
        [{"id": "1"}],
        "volumeTypes[0].name: not set",
    ),
    (
        "volumeTypes",
        [{"id": "1", "name": "a", "extraSpecs": {"b": 2}}],
        (
            'volumeTypes[0].extraSpecs.b: invalid value "2": must be a string (this is'
            " an integer)"
        ),
    ),
    (
        "volumeTypes",
        [{"id": "1", "name": "a", "isDefault": "yes"}],
        (
            'volumeTypes[0].isDefault: invalid value "yes": must be true or false (this'
            " is a string)"
        ),
    ),
    ("zones", [], "zones: invalid value: must be a list of at least 1 item"),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD)
def test_a_wrong_field_is_named_with_its_value(
    name: str, value: object, words: str
) -> None:
    """The message says the field, what it holds and what would be right."""
    document = copy.deepcopy(GOOD)
    document[name] = value
    message = told(document)
    assert message[0].startswith(words), message


def test_each_known_field_is_judged() -> None:
    """The table above has a row for every field of the schema."""
    document = schemas.validator(DISCOVERY_DATA).schema
    assert isinstance(document, dict)
    assert set(document["properties"]) == {row[0] for row in BAD}


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_no_object_at_all_is_one_sentence(document: object) -> None:
    """Whatever was decoded, there is a message and no traceback."""
    (message,) = told(document)
    assert message.startswith("document: ")
    assert "must be an object" in message
