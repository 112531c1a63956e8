"""The name by which this tool was started, for help, completion and messages."""

import os
import sys

NAME = "mooring"
PLUGIN = "kubectl-mooring"
"""Source: Kubernetes documentation, extend kubectl with plugins: the file's name."""
COMPLETE_VARIABLE = "_MOORING_COMPLETE"
COMPONENTS = (
    "openstack-ccm",
    "dvp-ccm",
    "capdvp",
    "capz",
    "zvirt-ccm",
    "csi-controller",
    "csi-node",
    "cloud-data-discoverer",
    "osdpl-controller",
    # In the umbrella chart for DVP, beside those for another cloud.
    "csi-controller-dvp",
    "csi-node-dvp",
    "cloud-data-discoverer-dvp",
)
"""Programs of this project in a cluster, by the label `app.kubernetes.io/name`."""


def name() -> str:
    """Return what the user types: "mooring", or "kubectl mooring" as a plugin.

    A PEX resolves a symbolic link before it starts; then the shell's variable `_` is
    the program that was started: the link, or kubectl, which becomes its plugin.
    """
    paths = (sys.argv[0], os.environ.get("_", ""))
    started = {os.path.basename(path).removesuffix(".pex") for path in paths}
    return "kubectl mooring" if started & {PLUGIN, "kubectl"} else NAME
