"""Values, differences and steps, by what the cluster has."""

import dataclasses

import pytest

from lib.migration import changeover, reference
from lib.migration.reference import Observed, ReferenceProgram, ReplacedBy
from lib.process import flags, kinds

FLAGS: tuple[flags.Flag[object], ...] = (
    flags.Flag("cluster-name", kinds.TEXT, "kubernetes", "Name."),
    flags.Flag("concurrent-service-syncs", kinds.TEXT, "1", "Number."),
    flags.Flag("profiling", kinds.TEXT, "", "Profiling.", no_effect="not served"),
)
MANAGER = ReferenceProgram(
    ReplacedBy.MANAGER,
    "DaemonSet",
    "kube-system",
    "openstack-cloud-controller-manager",
    (
        "--v=2",
        "--cluster-name=production",
        "--cloud-config=/etc/config/cloud.conf",
        "--concurrent-service-syncs=4",
        "--profiling=true",
        "--made-up=1",
        "--controllers=*,-node-route-controller",
    ),
    secret="cloud-config",
    key="cloud.conf",
)
CONTROLLER = ReferenceProgram(
    ReplacedBy.CSI_CONTROLLER,
    "Deployment",
    "kube-system",
    "csi-cinder-controllerplugin",
    ("--cluster=f49dd1c3", "--endpoint=unix:///csi/csi.sock"),
    {"csi-provisioner": ("--timeout=3m", "--feature-gates=Topology=false")},
    "cinder",
    "cloud.conf",
)
NODE = ReferenceProgram(
    ReplacedBy.CSI_NODE,
    "DaemonSet",
    "kube-system",
    "csi-cinder-nodeplugin",
    ("--with-topology=false",),
    {
        "node-driver-registrar": (
            "--kubelet-registration-path=/data/kubelet/plugins/x/csi.sock",
        )
    },
)
DRIVER = reference.DriverSpec(True, "File", ("Persistent", "Ephemeral"))


def planned(*programs: ReferenceProgram, hosts: int = 3) -> changeover.Changeover:
    observed = Observed(programs, DRIVER, hosts)
    result = changeover.plan(observed, FLAGS)
    assert result is not None
    return result


def test_without_the_reference_there_is_nothing_to_migrate() -> None:
    assert changeover.plan(Observed(()), FLAGS) is None


def test_flags_become_values() -> None:
    own = planned(MANAGER).values["openstack-ccm"]
    assert own == {
        "clusterName": "production",
        "controllers": ["*", "-node-route-controller"],
        "verbosity": 2,
        "extraArgs": ["--concurrent-service-syncs=4"],
    }


def test_flags_without_effect_are_differences() -> None:
    rows = {row.subject: row.after for row in planned(MANAGER).differences}
    assert rows["flag --profiling"] == "no effect: not served"
    assert rows["flag --made-up"] == "unknown: removed"


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ((), "0.0.0.0, port 10258", "address of the host, port 10471"),
        (
            ("--bind-address=127.0.0.1", "--secure-port=10260"),
            "127.0.0.1, port 10260",
            "address of the host, port 10471: other hosts reach it, and need a token",
        ),
    ],
    ids=["by default all hosts reach it", "an address of loopback was private"],
)
def test_the_address_of_probes_is_a_difference(
    words: tuple[str, ...], before: str, after: str
) -> None:
    program = dataclasses.replace(MANAGER, flags=words)
    rows = {row.subject: row for row in planned(program).differences}
    row = rows["address of probes and metrics"]
    assert (row.before, row.after) == (before, after)


def test_no_difference_is_from_nothing() -> None:
    rows = planned(MANAGER, CONTROLLER, NODE).differences
    assert [row.subject for row in rows if row.before in ("", "-")] == []


def test_the_first_step_builds_the_images_of_what_is_replaced() -> None:
    (_, commands), *_ = planned(MANAGER, NODE).steps
    assert commands == (
        "./pants run cmd/mooring -- lab image openstack-ccm csi-node --push REGISTRY",
    )


def test_components_are_those_that_were_installed() -> None:
    result = planned(MANAGER, NODE)
    assert result.values["components"] == {
        "openstack-ccm": True,
        "csi-controller": False,
        "csi-node": True,
        "cloud-data-discoverer": False,
    }
    shared = result.values["global"]
    assert shared["cloudConfig"] == {"secretName": "cloud-config", "key": "cloud.conf"}
    assert shared["controlPlaneNodes"] == 3


def test_volumes_keep_their_owner_and_the_driver_its_modes() -> None:
    values = planned(MANAGER, CONTROLLER, NODE).values
    assert values["csi-controller"] == {
        "clusterUUID": "f49dd1c3",
        "topology": False,
        "sidecars": {"timeout": "3m"},
        "csiDriver": {
            "podInfoOnMount": True,
            "fsGroupPolicy": "File",
            "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        },
        # Another Secret than that of openstack-ccm.
        "cloudConfig": {"secretName": "cinder", "key": "cloud.conf"},
    }
    assert values["csi-node"] == {
        "topology": False,
        "kubeletDirectory": "/data/kubelet",
    }


def test_a_managed_control_plane_has_no_hosts_to_select() -> None:
    values = planned(MANAGER, hosts=0).values
    selector = {"node-role.kubernetes.io/control-plane": None}
    assert values["openstack-ccm"]["nodeSelector"] == selector
    assert values["global"]["controlPlaneNodes"] == 0


@pytest.mark.parametrize(
    ("program", "stop", "back"),
    [
        (MANAGER, "patch daemonset openstack-cloud", '"mooring.io/stopped":null'),
        (CONTROLLER, "--replicas=0", "--replicas=1"),
    ],
)
def test_what_is_stopped_can_be_started(
    program: ReferenceProgram, stop: str, back: str
) -> None:
    steps = dict(planned(program).steps)
    stops = steps["Stop the reference; its objects remain for a rollback"]
    starts = steps["Roll back, if necessary"]
    assert stop in stops[0]
    assert back in starts[-1]
    assert starts[0].startswith("helm uninstall")
