"""Provider IDs of all clouds: written, parsed and assigned to a cloud here alone.

Formats are frozen by golden tests: a provider id can never be changed on a Node, so
every form that some release ever wrote has to parse for good.
"""

import dataclasses
import re

from lib.cloud.model import InstanceRef, NotManaged

OPENSTACK = "openstack"
DVP = "dvp"
ZVIRT = "zvirt"

_SEPARATOR = "://"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
"""Source: RFC 3986, 3.1."""
_OPENSTACK_REST = re.compile(r"([^/]*)/([^/]+)")
"""Source: kubernetes/cloud-provider-openstack pkg/openstack/instances.go."""


class ProviderIdError(ValueError):
    """The text is no provider ID; the message shows a valid one."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderId:
    """One provider id, taken apart.

    cloud: the scheme; any other than the three above is of another provider. region:
    empty when the id names none. id: of the instance inside its cloud (DVP: its name);
    for another provider all that follows the scheme, may be empty there.
    """

    cloud: str
    region: str
    id: str

    def may_be_in(self, region: str) -> bool:
        """Report whether it names this region, or none."""
        return self.region in ("", region)


def parse(text: str) -> ProviderId:
    """Take a provider id apart.

    A value without "://" is one of OpenStack that lost its scheme ("/<id>").

    Raises:
        ProviderIdError: it is empty, or of a known cloud but not in its form.

    Source: kubernetes/cloud-provider-openstack pkg/openstack/instances.go;
    deckhouse cloud-controller-managers of DVP (^dvp://(.+)$), zVirt (^zvirt://(.+)$).
    """
    if not text:
        raise ProviderIdError("the provider id is empty")
    whole = text if _SEPARATOR in text else f"{OPENSTACK}{_SEPARATOR}{text}"
    cloud, _, rest = whole.partition(_SEPARATOR)
    if cloud == OPENSTACK:
        return _openstack(text, rest)
    if cloud in (DVP, ZVIRT):
        if not rest:
            raise _wrong(text, f"{cloud}://<id>")
        return ProviderId(cloud, "", rest)
    if not _SCHEME.fullmatch(cloud):
        raise _wrong(text, "<cloud>://<id>")
    return ProviderId(cloud, "", rest)


def not_managed(ref: InstanceRef, cloud: str, region: str = "") -> NotManaged | None:
    """Return why a reference is of another cloud or region; None when it is not.

    A reference without a provider ID, or whose ID names no region, is of this cloud.
    """
    if not ref.provider_id:
        return None
    try:
        parsed = parse(ref.provider_id)
    except ProviderIdError as error:
        return NotManaged(str(error))
    if parsed.cloud != cloud:
        return NotManaged(f"provider id {ref.provider_id!r} is of another cloud")
    if not parsed.may_be_in(region):
        return NotManaged(
            f"provider id {ref.provider_id!r} is of region {parsed.region!r},"
            f" not of {region!r}"
        )
    return None


def openstack(instance_id: str, region: str = "") -> str:
    """Write the id of a Nova server; region: only when ids are to carry it."""
    return f"{OPENSTACK}{_SEPARATOR}{region}/{instance_id}"


def dvp(name: str) -> str:
    """Write the id of a DVP VirtualMachine, which is its name."""
    return f"{DVP}{_SEPARATOR}{name}"


def zvirt(instance_id: str) -> str:
    """Write the id of a zVirt VM."""
    return f"{ZVIRT}{_SEPARATOR}{instance_id}"


def _openstack(text: str, rest: str) -> ProviderId:
    parts = _OPENSTACK_REST.fullmatch(rest)
    if parts is None:
        raise _wrong(text, "openstack:///<id> or openstack://<region>/<id>")
    return ProviderId(OPENSTACK, parts[1], parts[2])


def _wrong(text: str, form: str) -> ProviderIdError:
    return ProviderIdError(f"provider id {text!r} is not of the form {form}")
