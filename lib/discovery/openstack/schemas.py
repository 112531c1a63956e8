"""The JSON schemas of Deckhouse's documents for OpenStack."""

import enum
import functools

import jsonschema

from lib.discovery import schema
from lib.process import config


class Schema(enum.StrEnum):
    """The documents with a schema, by the name of its file."""

    DISCOVERY_DATA = "discovery_data"
    """discovery-data.json, kind OpenStackCloudProviderDiscoveryData."""
    CLUSTER_CONFIGURATION = "cluster_configuration"
    """Input of the installer, kind OpenStackClusterConfiguration."""
    CLOUD_DISCOVERY_DATA = "cloud_discovery_data"
    """Discovery data of the base infrastructure, kind OpenStackCloudDiscoveryData."""
    SETTINGS = "settings"
    """The settings of the module cloud-provider-openstack."""
    INSTANCE_CLASS = "instance_class"
    """The spec of an OpenStackInstanceClass."""


def problems(kind: Schema, document: object) -> tuple[config.FieldProblem, ...]:
    """Return the problems of a document; see lib/discovery/schema.py."""
    return schema.problems(validator(kind), document)


@functools.cache
def validator(kind: Schema) -> jsonschema.Draft202012Validator:
    """Read a schema from the package."""
    return schema.read("lib.discovery.openstack", f"schemas/{kind.value}.json")
