"""zVirt, as an entry of `providers`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.commands import provider_entry

if TYPE_CHECKING:
    from lib.cloud import checkup
    from lib.lab.grounds import grounds as lab_grounds


def _rights() -> str:
    from lib.cloud.zvirt import component_rights

    return component_rights.manifest()


def _no_balancer_ids() -> Sequence[str]:
    return ()


def _read(
    path: str, env: Mapping[str, str], title: str = ""
) -> provider_entry.Configured:
    from mooring.commands import on_zvirt

    return on_zvirt.OnZvirt.read(path, env, title)


def _remedies() -> "checkup.Remedies":
    from lib.cloud.zvirt import checkup

    return checkup.REMEDIES


def _grounds() -> "lab_grounds.Grounds":
    from lib.lab.zvirt import grounds

    return grounds.ZvirtGrounds()


def _is_configured(env: Mapping[str, str]) -> bool:
    from lib.cloud.zvirt import config

    return config.is_in_environment(env)


def _driver() -> str:
    return "csi.ovirt.org"


PROVIDER = provider_entry.Provider(
    name="zvirt",
    component="zvirt-ccm",
    rights=_rights,
    config_help=(
        "With --cloud=zvirt the YAML of $OVIRT_CONFIG; by default the variables"
        " ZVIRT_* of the environment."
    ),
    # Those of the references' Secrets: of the CSI driver, and of the other components.
    config_keys=("cloud-config", "server"),
    existing_flag="",
    existing_help="",
    load_balancer_annotations=_no_balancer_ids,
    read=_read,
    remedies=_remedies,
    grounds=_grounds,
    existing=None,
    is_configured=_is_configured,
    kinds=None,
    machines=None,
    chart=None,
    client_words="counts",
    has_path=True,
    lease="zvirt-cloud-controller-manager",
    driver=_driver,
    variables={
        "server": "ZVIRT_API_URL",
        "username": "ZVIRT_USERNAME",
        "password": "ZVIRT_PASSWORD",
        "insecure": "ZVIRT_INSECURE",
        "caBundle": "ZVIRT_CA_BUNDLE",
    },
)
