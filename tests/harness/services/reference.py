"""Runs the daemons of the reference, so that they can be compared.

openstack-cloud-controller-manager runs without an election: whoever starts it sees to
it that ours does not run meanwhile.
"""

import pathlib
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.kube import kube_files
from lib.lab.openstack import accounts
from lib.lab.run import ports, processes

GROUP = "reference"
"""Of the programs that must be built."""
CCM = "openstack-cloud-controller-manager"
PORT = "reference"
SERVICES = "service-lb-controller"
"""The controller that makes load balancers."""
WORKERS = 4
"""Services in parallel: with more of them Octavia reports that the project is busy."""


def cloud_conf(
    where: places.Places,
    account: accounts.Account,
    settings: Mapping[str, str],
    keystone_url: str = "",
) -> str:
    """Return the text of a cloud.conf with settings of load balancers.

    settings: of [LoadBalancer], by key. keystone_url: another way in, that of
    `tests.harness.openstack.front`, say.

    Source: cloud-provider-openstack, "openstack-cloud-controller-manager",
    [LoadBalancer].
    """
    lines = [f'{key} = "{value}"' for key, value in settings.items()]
    text = accounts.cloud_conf(where, account, keystone_url)
    return "\n".join([text, "[LoadBalancer]", *lines, ""])


def arguments(
    where: places.Places,
    program: pathlib.Path,
    cloud_conf: pathlib.Path,
    cluster_name: str,
    controllers: Sequence[str] = (SERVICES,),
) -> tuple[str, ...]:
    """Return the command of openstack-cloud-controller-manager."""
    kubeconfig = kube_files.kubeconfig(where, "admin")
    return (
        str(program),
        "--cloud-provider=openstack",
        f"--cloud-config={cloud_conf}",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={ports.LOOPBACK}",
        f"--secure-port={where.port(PORT)}",
        f"--cluster-name={cluster_name}",
        f"--controllers={','.join(controllers)}",
        f"--concurrent-service-syncs={WORKERS}",
        "--configure-cloud-routes=false",
        "--leader-elect=false",
        "--profiling=false",
        "--v=3",
    )


def start_ccm(
    where: places.Places,
    cloud_conf: pathlib.Path,
    cluster_name: str,
    controllers: Sequence[str] = (SERVICES,),
) -> None:
    """Start openstack-cloud-controller-manager and wait until it listens.

    Raises:
        LabError: it is not built, ended, or did not listen in time.
    """
    program = programs.path(where, CCM)
    words = arguments(where, program, cloud_conf, cluster_name, controllers)
    port = where.port(PORT)
    processes.start(where, CCM, words)
    processes.wait_for(where, CCM, lambda: not ports.free(port))


def stop_ccm(where: places.Places) -> None:
    """End it; fine when it does not run."""
    processes.stop(where, [CCM])
