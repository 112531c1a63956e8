"""The JSON schemas of Deckhouse's documents for DVP."""

import enum
import functools

import jsonschema

from lib.discovery import schema
from lib.process import config


class Schema(enum.StrEnum):
    """The documents with a schema, by the name of its file."""

    CLUSTER_CONFIGURATION = "cluster_configuration"
    """Input of the installer, kind DVPClusterConfiguration."""
    DISCOVERY_DATA = "discovery_data"
    """discovery-data.json, kind DVPCloudDiscoveryData."""
    SETTINGS = "settings"
    """The settings of the module cloud-provider-dvp, of both generations."""
    INSTANCE_CLASS = "instance_class"
    """The spec of a DVPInstanceClass."""


def problems(kind: Schema, document: object) -> tuple[config.FieldProblem, ...]:
    """Return the problems of a document; see lib/discovery/schema.py."""
    return schema.problems(validator(kind), document)


@functools.cache
def validator(kind: Schema) -> jsonschema.Draft202012Validator:
    """Read a schema from the package."""
    return schema.read("lib.discovery.dvp", f"schemas/{kind.value}.json")
