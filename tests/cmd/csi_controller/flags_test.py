"""The program knows each flag of its reference."""

from csi_controller import main

REFERENCE = """
endpoint cloud-config cloud-name cluster with-topology additional-topology
http-endpoint provide-controller-service provide-node-service pvc-annotations master
kubeconfig kube-api-qps kube-api-burst min-resync-period user-agent nodeid
node-service-no-os-client
""".split()
"""Source: kubernetes/cloud-provider-openstack cmd/cinder-csi-plugin/main.go."""


def test_each_flag_of_the_reference_is_known() -> None:
    assert set(REFERENCE) <= {flag.name for flag in main.FLAGS}
