"""Each transition of the simulated parent happens, on what it is based on."""

from lib.lab.dvp.kinds import ATTACHMENTS, DISKS
from lib.lab.dvp.project import Project
from tests.harness.dvp.dvp_parent import DvpParent


def test_a_machine_runs_and_a_disk_is_attached(
    parent: DvpParent, project: Project
) -> None:
    vms = parent.machines(project, ["node-1"])
    assert vms["node-1"]["status"]["ipAddress"]
    objects = parent.objects(project)
    claim = {"storageClassName": "replicated", "size": "1Gi"}
    objects.make(DISKS, "data", spec={"persistentVolumeClaim": claim})
    parent.wait_phase(DISKS, project, "data", "WaitForFirstConsumer")
    reference = {"kind": "VirtualDisk", "name": "data"}
    spec = {"virtualMachineName": "node-1", "blockDeviceRef": reference}
    objects.make(ATTACHMENTS, "att", spec=spec)
    parent.wait_phase(ATTACHMENTS, project, "att", "Attached")
