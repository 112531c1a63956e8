"""Reads the annotations of single PersistentVolumeClaims, when requested."""

import re
from collections.abc import Mapping

import msgspec

from lib.kube import client, errors, resources
from lib.process import decoding
from lib.volumes.csi_codes import Code, RefusedCall

TIMEOUT_S = 10.0


_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Metadata(msgspec.Struct):
    uid: str = ""
    annotations: dict[str, str] = {}


class _Claim(msgspec.Struct):
    metadata: _Metadata


class Claims:
    """The claims of one cluster."""

    def __init__(self, api: client.Api) -> None:
        self._api = api

    def annotations(
        self, namespace: str, name: str, volume_name: str
    ) -> Mapping[str, str]:
        """Return a claim's annotations; none when the claim was deleted.

        A later claim of the same name is ignored: the name of the volume contains the
        UID of its claim (pvc-<uid>).

        Raises:
            RefusedCall: UNAVAILABLE: the claim can't be read.

        Source: kubernetes-csi/external-provisioner, --volume-name-prefix.
        """
        claims = resources.CLAIMS
        try:
            body = self._api.read(claims, name, namespace, timeout_s=TIMEOUT_S)
            metadata = decoding.decode(body, _Claim).metadata
        except errors.NotFound:
            return {}
        except (errors.KubeError, msgspec.DecodeError) as error:
            text = f"read PersistentVolumeClaim {namespace}/{name}: {error}"
            raise RefusedCall(Code.UNAVAILABLE, text) from error
        uids = _UID.findall(volume_name)
        is_another = bool(uids) and metadata.uid not in uids
        return {} if is_another else metadata.annotations
