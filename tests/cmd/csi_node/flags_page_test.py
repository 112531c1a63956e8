"""The page of flags matches the program, which knows the reference's flags."""

import pathlib

from csi_node import main
from lib.process import command_line

HEAD = """# Flags of csi-node

Every flag of the references is accepted: cinder-csi-plugin, dvp-csi-driver,
ovirt-csi-driver. Those marked **No effect** do nothing here, for the reason given, and
warn once at start. Flags of our own, which the references do not know: `--cloud`,
`--dev-root`, `--kubelet-directory`, `--kubelet-registration-path`, `--logging-format`,
`--max-volumes`, `--metadata-address`, `--registration-socket`, `--sys-root`.

"""

REFERENCE = """
endpoint cloud-config cloud-name cluster with-topology additional-topology
http-endpoint provide-controller-service provide-node-service pvc-annotations master
kubeconfig kube-api-qps kube-api-burst min-resync-period user-agent nodeid
node-service-no-os-client
node-name drivername ovirt-conf namespace
""".split()
"""Source: kubernetes/cloud-provider-openstack cmd/cinder-csi-plugin/main.go; Deckhouse
dvp-csi-driver; openshift/ovirt-csi-driver."""


def test_the_page_of_flags_is_up_to_date() -> None:
    """To rewrite it, put what this test prints into the file."""
    page = HEAD + command_line.reference(main.FLAGS)
    print(page)
    assert pathlib.Path("docs/csi-node-flags.md").read_text() == page


def test_each_flag_of_the_reference_is_known() -> None:
    assert set(REFERENCE) <= {flag.name for flag in main.FLAGS}
