"""Bootstrap Secrets: checked without their content, and read by one step each.

The watched store keeps the format and the size of the data, never the data.

Source: kubernetes-sigs/cluster-api docs/book, contract of bootstrap providers.
"""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from lib.cloud import errors
from lib.cloud.machines import Bootstrap, BootstrapData, Reason
from lib.cloud.steps import Problem
from lib.kube import client, objects, resources
from lib.kube import errors as kube_errors
from lib.process import config, decoding

VALUE = "value"
FORMAT = "cloud-config"
READ_TIMEOUT_S = 10.0
FIELD = "spec.bootstrap.dataSecretName"


def _sized(text: str) -> int:
    """Return the number of bytes of a base64 text."""
    return len(text) // 4 * 3 - text.count("=", -2)


class BootstrapSecret(msgspec.Struct, frozen=True):
    """A bootstrap Secret without its data.

    data: only its format, in base64. size_bytes: of the data; -1 if there is none.
    """

    metadata: objects.ObjectMeta
    data: Mapping[str, str] | None = None
    size_bytes: int = -1

    def __post_init__(self) -> None:
        """Drop the data as soon as it is decoded."""
        data = self.data or {}
        kept = {name: text for name, text in data.items() if name == "format"}
        if VALUE in data:
            msgspec.structs.force_setattr(self, "size_bytes", _sized(data[VALUE]))
        msgspec.structs.force_setattr(self, "data", kept)

    @property
    def format(self) -> str:
        """Format of the data; without one it is cloud-config."""
        try:
            text = base64.b64decode((self.data or {}).get("format", ""))
        except binascii.Error:
            return "?"
        return text.decode(errors="replace") or FORMAT


def checked(
    secret: BootstrapSecret | None, name: str, bytes_max: int
) -> Bootstrap | Problem:
    """Return the reference to bootstrap data, or what is wrong with it."""
    problem: config.FieldProblem | None = None
    if secret is None:
        problem = config.stated(FIELD, f"Secret {name}: not found")
    elif secret.size_bytes < 1:
        problem = config.not_set(f"Secret {name}: data.{VALUE}")
    elif secret.format != FORMAT:
        problem = config.FieldProblem(
            f"Secret {name}: data.format", secret.format, FORMAT
        )
    elif secret.size_bytes > bytes_max:
        text = f"{secret.size_bytes} bytes are too large: must be at most {bytes_max}"
        problem = config.stated(f"Secret {name}: data.{VALUE}", text)
    if problem is not None or secret is None:
        return Problem(Reason.INVALID_BOOTSTRAP, str(problem), is_fatal=True)
    about = secret.metadata
    version = f"{about.uid}/{about.resource_version}"
    return Bootstrap(about.namespace, about.name, version, secret.size_bytes)


class _Full(msgspec.Struct, frozen=True):
    data: Mapping[str, str] = msgspec.field(default_factory=dict)


class Reader:
    """Reads bootstrap data for `Machines.apply`; see `lib.cloud.machines`."""

    def __init__(self, api: client.Api) -> None:
        self._api = api

    def __call__(self, bootstrap: Bootstrap) -> BootstrapData:
        """Read the data.

        Raises:
            NotFound, Unavailable: of the cloud's errors; nothing was sent to the cloud.
        """
        about = f"{bootstrap.namespace}/{bootstrap.name}"
        operation = "read bootstrap Secret"
        try:
            body = self._api.read(
                resources.SECRETS,
                bootstrap.name,
                bootstrap.namespace,
                timeout_s=READ_TIMEOUT_S,
            )
        except kube_errors.NotFound:
            raise errors.NotFound(
                "not found", operation=operation, resource=about
            ) from None
        except kube_errors.KubeError as error:
            raise errors.Unavailable(
                type(error).__name__,
                operation=operation,
                resource=about,
                was_rejected=True,
            ) from None
        text = decoding.decode(body, _Full).data.get(VALUE, "")
        try:
            return BootstrapData(base64.b64decode(text))
        except binascii.Error:
            raise errors.InvalidRequest(
                "data.value: not base64", operation=operation, resource=about
            ) from None
