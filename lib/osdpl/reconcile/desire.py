"""What an OpenStackDeployment and the Secrets it needs mean. Pure."""

from collections.abc import Mapping

from lib.osdpl.api import model, references, spec
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile.snapshot import Desired, Refused
from lib.osdpl.rules import openstack
from lib.osdpl.values import (
    credentials,
    generating,
    layers,
    render,
    required_secrets,
    secret_shapes,
)
from lib.process import config

Secrets = Mapping[str, credentials.Stored]
"""Secrets of the namespace by name, without release Secrets."""


def desire(
    document: Document, secrets: Secrets, default: model.Source | None
) -> Desired:
    """Return what is desired, as far as the Secrets are available.

    default: the source of charts when the spec names none.
    """
    try:
        deployment = spec.parse(document)
        substituted = _substituted(deployment, secrets)
        if isinstance(substituted, Desired):
            return substituted
        # Rules read, and quote, the spec as it is written: with references.
        effective = layers.effective(deployment.spec)
        services = layers.services(effective)
        config.require(tuple(openstack.plain_key(substituted.spec)))
        shapes = required_secrets.required(services)
        writes = credentials.writes(shapes, secrets, generating.Placeholders())
        if writes:
            missing = tuple(write.name for write in writes)
            absent = tuple(write.name for write in writes if write.is_new)
            return Desired(deployment, missing=missing, absent=absent, spec=effective)
        inputs = render.Inputs(
            deployment=substituted,
            written=deployment.spec,
            credentials=credentials.read(shapes, secrets),
            repository_default=default,
        )
        return Desired(deployment, rendered=render.render(inputs), spec=effective)
    except config.ConfigError as error:
        problems = tuple(
            problem
            for problem in error.problems
            if isinstance(problem, config.FieldProblem)
        )
        return Desired(reason=Refused.INVALID_SPEC, problems=problems)


def needed(document: Document) -> frozenset[str]:
    """Return the names of the Secrets that the object depends on.

    An object that cannot be read depends on none.
    """
    try:
        deployment = spec.parse(document)
        services = layers.services(layers.effective(deployment.spec))
    except config.ConfigError:
        return frozenset()
    read = {reference.secret for reference in references.find(deployment.spec)}
    for shape in required_secrets.required(services):
        read.update(shape.names)
    return frozenset(read)


def shapes(document: Document) -> tuple[secret_shapes.Shape, ...]:
    """Return the Secrets of credentials that an object needs.

    Raises:
        ConfigError: the object cannot be read.
    """
    deployment = spec.parse(document)
    services = layers.services(layers.effective(deployment.spec))
    return required_secrets.required(services)


def _substituted(
    deployment: model.Deployment, secrets: Secrets
) -> model.Deployment | Desired:
    """Return it with the values that Secrets hold, or why that is not possible."""
    names = {reference.secret for reference in references.find(deployment.spec)}
    data = {
        name: secrets[name].data
        for name in names
        if name in secrets and secrets[name].is_referable
    }
    try:
        replaced = references.substitute(deployment.spec, data)
    except config.ConfigError as error:
        problems = tuple(
            p for p in error.problems if isinstance(p, config.FieldProblem)
        )
        return Desired(deployment, Refused.SECRET_MISSING, problems)
    return model.Deployment(
        name=deployment.name,
        namespace=deployment.namespace,
        uid=deployment.uid,
        generation=deployment.generation,
        is_draft=deployment.is_draft,
        spec=replaced,
    )
