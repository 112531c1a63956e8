"""OpenStack, as an entry of `providers`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.commands import provider_entry

if TYPE_CHECKING:
    from lib.cloud import checkup
    from lib.lab.grounds import grounds as lab_grounds


def _rights() -> str:
    from lib.doctor import rights

    return rights.manifest("openstack-ccm")


def _balancer_ids() -> Sequence[str]:
    from lib.cloud.openstack.load_balancers.spec import annotations

    keys = (annotations.OWNED_ID, annotations.LOAD_BALANCER_ID)
    return (*keys, annotations.DECKHOUSE_ID)


def _read(
    path: str, env: Mapping[str, str], title: str = ""
) -> provider_entry.Configured:
    from mooring.commands import on_openstack

    return on_openstack.OnOpenStack.read(path, env, title)


def _remedies() -> "checkup.Remedies":
    from lib.cloud.openstack import checkup

    return checkup.REMEDIES


def _grounds() -> "lab_grounds.Grounds":
    from lib.lab.openstack import grounds

    return grounds.OpenStackGrounds()


def _existing(name: str) -> "lab_grounds.Existing":
    from lib.lab.grounds import grounds
    from lib.lab.openstack import named

    return grounds.Existing(name, named.usual_file())


def _driver() -> str:
    from lib.migration import reference

    return reference.OPENSTACK.driver


PROVIDER = provider_entry.Provider(
    name="openstack",
    component="openstack-ccm",
    rights=_rights,
    config_help="The daemon's cloud.conf.",
    # Those of the reference's chart, and of ours.
    config_keys=("cloud.conf", "cloud-config"),
    existing_flag="--os-cloud",
    existing_help="Use this cloud of clouds.yaml.",
    load_balancer_annotations=_balancer_ids,
    read=_read,
    remedies=_remedies,
    grounds=_grounds,
    existing=_existing,
    client_words="-- server list",
    driver=_driver,
)
