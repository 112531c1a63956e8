"""The clouds that one driver serves, by the name in a request's secrets.

Source: kubernetes/cloud-provider-openstack docs/cinder-csi-plugin
(multi-region-clouds): the key "cloud" of the secrets, --cloud-name.
"""

from collections.abc import Iterator, Mapping

from lib.cloud.volumes import Volume, VolumeId
from lib.volumes import callers, flow
from lib.volumes.csi_codes import Code, RefusedCall, invalid

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
            RefusedCall: INVALID_ARGUMENT: unknown cloud.
        """
        name = secrets.get(KEY, self._default)
        if name not in self._flows:
            # The message holds the name: it only leads to credentials.
            names = ", ".join(f'"{name}"' for name in self._flows)
            text = invalid(f"secrets[{KEY}]", name, f"one of {names}")
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
        return self._flows[name]

    def holding(
        self,
        secrets: Mapping[str, str],
        volume_id: VolumeId,
        call: callers.Caller,
    ) -> flow.VolumesFlow:
        """Return the cloud of a request by which a volume may be absent.

        Of several clouds it is the one that has the volume, that of the secrets first:
        what one cloud lacks is absent only when no other has it.

        Raises:
            RefusedCall: INVALID_ARGUMENT: unknown cloud; or a cloud can't be read.
        """
        named = self.of(secrets)
        if len(self._flows) == 1:
            return named
        others = [cloud for cloud in self._flows.values() if cloud is not named]
        for cloud in (named, *others):
            try:
                cloud.read(volume_id, call)
            except RefusedCall as refused:
                if refused.code is not Code.NOT_FOUND:
                    raise
            else:
                return cloud
        return named

    def find(self, volume_id: VolumeId, call: callers.Caller) -> Volume:
        """Search a volume in all clouds.

        Raises:
            RefusedCall: NOT_FOUND in all, or a cloud can't be read.
        """
        missing: RefusedCall | None = None
        for cloud in self._flows.values():
            try:
                return cloud.read(volume_id, call)
            except RefusedCall as refused:
                if refused.code is not Code.NOT_FOUND:
                    raise
                missing = refused
        assert missing is not None  # noqa: S101 -- there is at least one cloud
        raise missing

    def all(self, call: callers.Caller, after: str) -> Iterator[tuple[str, Volume]]:
        """Yield all volumes, each with the token of the page that begins after it.

        after: such a token, or empty. The order is by cloud, then by volume ID, so that
        a token stays valid when the volume in it is deleted.

        Raises:
            RefusedCall: ABORTED: invalid token; or the volumes can't be listed.
        """
        names = list(self._flows)
        first, last_id = self._begin(after, names)
        for name in names[first:]:
            volumes = self._flows[name].all(call)
            for volume_id in sorted(id_ for id_ in volumes if id_ > last_id):
                yield f"{volume_id}:{name}", volumes[volume_id]
            last_id = ""

    def _begin(self, after: str, names: list[str]) -> tuple[int, str]:
        if not after:
            return 0, ""
        last_id, colon, name = after.partition(":")
        is_known = bool(colon) and name in names
        if not is_known or not self._flows[name].is_id(last_id):
            text = invalid("starting_token", after, "a next_token of this driver")
            raise RefusedCall(Code.ABORTED, text)
        return names.index(name), last_id
