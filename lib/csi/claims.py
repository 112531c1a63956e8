"""Reads the annotations of PersistentVolumeClaims, one by one as they are wanted."""

from collections.abc import Mapping

import msgspec

from lib.kube import client, errors, resources
from lib.process import decoding
from lib.volumes.refusals import Code, Refused

TIMEOUT_S = 10.0


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Claim(msgspec.Struct):
    metadata: _Metadata


class Claims:
    """The claims of one cluster."""

    def __init__(self, api: client.Api) -> None:
        self._api = api

    def annotations(self, namespace: str, name: str) -> Mapping[str, str]:
        """Give a claim's annotations.

        Raises:
            Refused: they can't be read.
        """
        claims = resources.CLAIMS
        try:
            body = self._api.read(claims, name, namespace, timeout_s=TIMEOUT_S)
            return decoding.decode(body, _Claim).metadata.annotations
        except (errors.KubeError, msgspec.DecodeError) as error:
            text = f"PersistentVolumeClaim {namespace}/{name} can't be read ({error})"
            raise Refused(Code.UNAVAILABLE, text) from error
