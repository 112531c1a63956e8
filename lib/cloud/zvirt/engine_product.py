"""What an API shows of its engine, and what is wrong with its settings. Pure.

A configuration that is wrong has the same sentence in every component: the setting,
its value, and what would be right.
"""

import dataclasses

from lib.cloud import errors
from lib.cloud.zvirt import config, documents

OLDEST = (4, 4)
"""Version of the API that components require."""
_REQUIRED = "must be the URL of an oVirt engine with API 4.4 or newer"
_OPERATION = "read the API"


@dataclasses.dataclass(frozen=True, slots=True)
class EngineProduct:
    """One engine. id: of this installation. version: with all its parts.

    vms: number of its VMs; None: it does not show that to this user.
    """

    id: str
    version: str
    vms: int | None = None


def of_root(root: documents.Entity, settings: config.EngineConfig) -> EngineProduct:
    """Return the product of the root of an API.

    Raises:
        Unavailable: it is not that of an engine.
        Unsupported: its API is too old.
    """
    product = getattr(root, "product_info", None)
    version = None if product is None else product.version
    if product is None or version is None or version.major is None:
        raise errors.Unavailable(
            _sentence(settings, "not an engine"), operation=_OPERATION
        )
    number = (version.major, version.minor or 0)
    text = ".".join(map(str, number))
    if number < OLDEST:
        message = _sentence(settings, f"API {text} is too old")
        raise errors.Unsupported(message, operation=_OPERATION)
    summary = root.summary and root.summary.vms
    return EngineProduct(
        str(product.instance_id or ""),
        version.full_version or text,
        summary.total if summary else None,
    )


def _sentence(settings: config.EngineConfig, problem: str) -> str:
    return f'{settings.names.url}: "{settings.url}": {problem}: {_REQUIRED}'


def explain(error: errors.CloudError, settings: config.EngineConfig) -> str:
    """Return what is wrong with the configuration, for one failed call."""
    names = settings.names
    if error.message.startswith(f"{names.url}: "):
        return error.message
    if isinstance(error, errors.Unauthenticated):
        return f'{names.username}: "{settings.username}": {error.message}'
    if "certificate not accepted" in error.message:
        return f"{names.ca}: {error.message}: must be the engine's authority"
    if "not an engine" in error.message:
        return _sentence(settings, error.message)
    return f'{names.url}: "{settings.url}": {error.message}'
