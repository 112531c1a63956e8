"""zVirt, as an entry of `providers`: it has a lab, and no component yet."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.commands import provider_entry

if TYPE_CHECKING:
    from lib.cloud import checkup
    from lib.lab.grounds import grounds as lab_grounds


def _rights() -> str:
    return ""


def _no_balancer_ids() -> Sequence[str]:
    return ()


def _read(
    path: str, env: Mapping[str, str], title: str = ""
) -> provider_entry.Configured:
    from lib.process import config

    del path, env
    raise config.ConfigError([f"{title or 'zVirt'}: no component supports it yet"])


def _remedies() -> "checkup.Remedies":
    from lib.cloud.zvirt import checkup

    return checkup.REMEDIES


def _grounds() -> "lab_grounds.Grounds":
    from lib.lab.zvirt import grounds

    return grounds.ZvirtGrounds()


PROVIDER = provider_entry.Provider(
    name="zvirt",
    component="zvirt-ccm",
    rights=_rights,
    config_help="",
    config_keys=(),
    existing_flag="",
    existing_help="",
    load_balancer_annotations=_no_balancer_ids,
    read=_read,
    remedies=_remedies,
    grounds=_grounds,
    client_words="counts",
    has_components=False,
)
