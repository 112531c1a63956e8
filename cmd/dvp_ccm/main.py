"""Starts dvp-ccm from the reference's own command line."""

import dataclasses
import os
import re

from dvp_ccm import version
from lib.ccm import flag_table, options, start_checks
from lib.cloud.dvp import config as parent_config
from lib.cloud.dvp.load_balancers import lb_names
from lib.daemon import common_flags
from lib.process import command_line, config, flags, kinds, shutdown

NAME = "dvp-ccm"
PROVIDER = "dvp"
HELP = """Keep Kubernetes Nodes and virtual machines of a DVP parent cluster 1:1.

A drop-in replacement for the cloud controller manager of Deckhouse's DVP module: its
flags and its environment.
"""
_NO_FILE = "the parent's kubeconfig and environment variables are read instead"
_NO_ROUTES = "the parent cluster has no routes to Pods"
_OWN_ID = "CLUSTER_UUID is the ID of the cluster"
_OWN_NAMES = "names in the parent follow from the UIDs of Services"
_NO_EFFECT = {
    flag_table.CLUSTER_ID: _OWN_ID,
    flag_table.CLUSTER_NAME: _OWN_NAMES,
    flag_table.CLOUD_CONFIG: _NO_FILE,
    flag_table.CONFIGURE_ROUTES: _NO_ROUTES,
    flag_table.CLUSTER_CIDR: _NO_ROUTES,
    flag_table.ROUTE_PERIOD: _NO_ROUTES,
}
DISABLING_CONFIG_MAP = flags.Flag(
    "disabling-config-map",
    kinds.TEXT,
    lb_names.DISABLING_CONFIG_MAP,
    "Namespace and name of a ConfigMap, as NAMESPACE/NAME: as long as it exists, load"
    " balancers are not managed.",
    group=flags.LOAD_BALANCERS,
)
FORWARDED_ANNOTATIONS = flags.Flag(
    "forwarded-annotations",
    kinds.LIST,
    ("*",),
    "Prefixes of the annotations of a Service that are copied to the parent, separated"
    " by commas; * for all.",
    group=flags.LOAD_BALANCERS,
)
FORWARD_EXTERNAL_IPS = flags.Flag(
    "forward-external-ips",
    kinds.BOOLEAN,
    True,
    "Copy spec.externalIPs of a Service to the parent.",
    group=flags.LOAD_BALANCERS,
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


FLAGS = (
    parent_config.PARENT_KUBECONFIG,
    DISABLING_CONFIG_MAP,
    FORWARDED_ANNOTATIONS,
    FORWARD_EXTERNAL_IPS,
    *start_checks.shared_flags(_NO_EFFECT),
)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, environment, kubeconfigs and of the address."""
    path = values[parent_config.PARENT_KUBECONFIG]
    return start_checks.problems(
        values,
        PROVIDER,
        lambda: parent_config.read(path, os.environ),
        lambda: _require_name(values[DISABLING_CONFIG_MAP]),
    )


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        field, expected = f"--{DISABLING_CONFIG_MAP.name}", "NAMESPACE/NAME"
        raise config.ConfigError([config.FieldProblem(field, name, expected)])


def run(values: flags.Values) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: flags or environment cannot be used; every problem is named.
    """
    # Heavy, and not needed for --help.
    from dvp_ccm import parent_cluster
    from lib.ccm import manager
    from lib.cloud.dvp.load_balancers.desired_service import Forwarding

    settings = options.read(values, PROVIDER)
    path = values[parent_config.PARENT_KUBECONFIG]
    agents = values[common_flags.USER_AGENT]
    forwarding = Forwarding(values[FORWARDED_ANNOTATIONS], values[FORWARD_EXTERNAL_IPS])
    connect = parent_cluster.opener(path, os.environ, agents, forwarding)
    uuid = parent_config.read(path, os.environ).cluster_uuid
    settings = dataclasses.replace(settings, cluster_id=uuid)
    program = manager.ManagerProgram(
        NAME,
        version.VERSION,
        PROVIDER,
        connect,
        disables_load_balancers=values[DISABLING_CONFIG_MAP],
    )
    code = manager.run(program, values, settings, os.environ)
    shutdown.end_now(code)  # a worker that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
