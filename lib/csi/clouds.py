"""The clouds that one driver serves, by the name in a request's secrets.

Source: kubernetes/cloud-provider-openstack docs/cinder-csi-plugin
(multi-region-clouds): the key "cloud" of the secrets, --cloud-name.
"""

from collections.abc import Iterator, Mapping

from lib.cloud.volumes import Volume, VolumeId
from lib.volumes import callers, flow
from lib.volumes.csi_codes import Code, RefusedCall

KEY = "cloud"


class Clouds:
    """The flows of all clouds, the default one first."""

    def __init__(self, flows: Mapping[str, flow.VolumesFlow]) -> None:
        """flows: by the name of the cloud, "" for one without; at least one."""
        self._flows = dict(flows)
        self._default = next(iter(self._flows))

    @property
    def default(self) -> flow.VolumesFlow:
        """Return the cloud of requests that name none."""
        return self._flows[self._default]

    def of(self, secrets: Mapping[str, str]) -> flow.VolumesFlow:
        """Return the cloud that a request's secrets name.

        Raises:
            Refused: INVALID_ARGUMENT; there is no such cloud.
        """
        name = secrets.get(KEY, self._default)
        if name not in self._flows:
            # The name is told: it only leads to credentials, and is none itself.
            names = ", ".join(repr(one) for one in self._flows)
            text = f"secrets[{KEY}] is {name!r}; want one of {names}"
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
        return self._flows[name]

    def find(self, volume_id: VolumeId, call: callers.Caller) -> Volume:
        """Look for a volume in each of them.

        Raises:
            Refused: NOT_FOUND in all, or one can't be asked.
        """
        missing: RefusedCall | None = None
        for one in self._flows.values():
            try:
                return one.look(volume_id, call)
            except RefusedCall as refused:
                if refused.code is not Code.NOT_FOUND:
                    raise
                missing = refused
        assert missing is not None  # noqa: S101 -- there is at least one cloud
        raise missing

    def all(self, call: callers.Caller, after: str) -> Iterator[tuple[str, Volume]]:
        """Yield all volumes, each with the token that stands for "after this one".

        after: such a token, or empty. Volumes come cloud by cloud, in order of their
        ids: a token stays good when the volume it names is deleted.

        Raises:
            Refused: ABORTED for a token that is none; or they can't be listed.
        """
        names = list(self._flows)
        first, last_id = self._begin(after, names)
        for name in names[first:]:
            volumes = self._flows[name].all(call)
            for volume_id in sorted(one for one in volumes if one > last_id):
                yield f"{volume_id}:{name}", volumes[volume_id]
            last_id = ""

    def _begin(self, after: str, names: list[str]) -> tuple[int, str]:
        if not after:
            return 0, ""
        last_id, colon, name = after.partition(":")
        is_ours = bool(colon) and name in names
        if not is_ours or not self._flows[name].is_id(last_id):
            text = f"starting_token is {after!r}; want a next_token of this driver"
            raise RefusedCall(Code.ABORTED, text)
        return names.index(name), last_id
