"""DVP, as an entry of `providers`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.commands import provider_entry

if TYPE_CHECKING:
    from lib.cloud import checkup
    from lib.doctor import chart, machine_api
    from lib.lab.grounds import grounds as lab_grounds
    from lib.machines.kinds import Kinds


def _rights() -> str:
    from lib.cloud.dvp import needs

    return needs.manifest()


def _no_balancer_ids() -> Sequence[str]:
    return ()


def _read(
    path: str, env: Mapping[str, str], title: str = ""
) -> provider_entry.Configured:
    from mooring.commands import on_dvp

    return on_dvp.OnDvp.read(path, env, title)


def _remedies() -> "checkup.Remedies":
    from lib.cloud.dvp import checkup

    return checkup.REMEDIES


def _grounds() -> "lab_grounds.Grounds":
    from lib.lab.dvp import grounds

    return grounds.DvpGrounds()


def _is_configured(env: Mapping[str, str]) -> bool:
    from lib.cloud.dvp import config

    return config.is_in_environment(env)


def _kinds() -> "Kinds":
    from mooring.commands import on_dvp

    return on_dvp.KINDS


def _machines() -> "machine_api.MachineProvider":
    from mooring.commands import on_dvp

    return on_dvp.machines()


def _chart() -> "chart.UmbrellaChart":
    from mooring.commands import chart_of_dvp

    return chart_of_dvp.expected(PROVIDER)


def _driver() -> str:
    from lib.migration.dvp import dvp_changeover

    return dvp_changeover.REFERENCE.driver


PROVIDER = provider_entry.Provider(
    name="dvp",
    component="dvp-ccm",
    rights=_rights,
    config_help=(
        "With --cloud=dvp the parent's kubeconfig; by default"
        " $DVP_KUBERNETES_CONFIG_BASE64 is one."
    ),
    config_keys=("kubernetesConfigBase64", "kubeconfig"),
    existing_flag="",
    existing_help="",
    load_balancer_annotations=_no_balancer_ids,
    read=_read,
    remedies=_remedies,
    grounds=_grounds,
    is_configured=_is_configured,
    kinds=_kinds,
    machines=_machines,
    chart=_chart,
    has_path=True,
    lease="dvp-cloud-controller-manager",
    driver=_driver,
    variables={"namespace": "DVP_NAMESPACE", "clusterUUID": "CLUSTER_UUID"},
)
