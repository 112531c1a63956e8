"""Scenarios of the simulated engine: VMs, NICs, disks and attachments."""

from lib.lab.zvirt import control, seed
from tests.lib.lab.zvirt.scenarios import proves
from tests.lib.lab.zvirt.stage import (
    ABSENT,
    NFS,
    PROFILE,
    Stage,
    attachment_body,
    disk_body,
    vm_body,
)

_GIB = 1 << 30
_START = "<action/>"
_ISCSI = seed.identifier(seed.ISCSI)


@proves("vm-created", "vm-cloned", "vm-copied", "vm-memory")
def a_vm_is_created_from_a_template(stage: Stage) -> None:
    vm = stage.ok("POST", "vms?clone=true", vm_body())
    key = vm.attrib["id"]
    assert vm.findtext("status") == "image_locked"
    assert vm.find("template").attrib["id"] == "0" * 8 + "-0000-0000-0000-" + "0" * 12  # type: ignore[union-attr]
    assert vm.findtext("memory_policy/guaranteed") == str(_GIB)
    assert vm.findtext("memory_policy/max") == str(4 * _GIB)
    stage.advance(0.9)
    assert stage.status(f"vms/{key}") == "image_locked"
    stage.advance(0.2)
    assert stage.status(f"vms/{key}") == "down"
    (attachment,) = stage.get(f"vms/{key}/diskattachments")
    disk = attachment.attrib["id"]
    assert stage.status(f"disks/{disk}") == "ok"


@proves("vm-linked")
def a_thin_vm_keeps_its_template(stage: Stage) -> None:
    key = stage.new_vm(query="?clone=false")
    template = stage.get(f"vms/{key}").find("template")
    assert template is not None
    assert template.attrib["id"] == seed.identifier("template 1")


@proves("vm-created-empty", "vm-no-boot-disk")
def a_vm_without_disks(stage: Stage) -> None:
    reply = stage.reply("POST", "vms", vm_body(template="Blank"))
    assert reply.status == 201
    (vm,) = stage.get("vms")
    assert vm.findtext("status") == "down"
    text = stage.refused("POST", f"vms/{vm.attrib['id']}/start", _START)
    assert text == "409 [Cannot run VM without at least one bootable disk.]"


@proves("vm-name-taken", "vm-template-locked", "vm-guaranteed-memory")
def invalid_vms(stage: Stage) -> None:
    stage.new_vm()
    text = stage.refused("POST", "vms", vm_body())
    assert text == "409 [Cannot add VM. The VM name is already in use.]"
    policy = (
        "<memory>1</memory><memory_policy><guaranteed>2</guaranteed></memory_policy>"
    )
    text = stage.refused("POST", "vms", vm_body("web-2", policy))
    assert "Physical Memory Guaranteed cannot exceed Memory Size" in text
    assert text.startswith("400")
    stage.set("template", seed.TEMPLATE, status="locked")
    assert stage.refused("POST", "vms", vm_body("web-2")).startswith("409")


@proves("vm-image-illegal", "disk-failed", lines=("fail vm-copied",))
def a_failed_copy_leaves_no_status(stage: Stage) -> None:
    key = stage.new_vm()
    assert stage.get(f"vms/{key}").find("status") is None
    (attachment,) = stage.get(f"vms/{key}/diskattachments")
    assert stage.status(f"disks/{attachment.attrib['id']}") == "illegal"


@proves("vm-started", "vm-launched", "vm-booted", "vm-agent", "devices-shown")
def a_vm_starts(stage: Stage) -> None:
    key = stage.new_vm()
    stage.ok("POST", f"vms/{key}/nics", "<nic><name>nic1</name></nic>")
    stage.ok("POST", f"vms/{key}/start", _START)
    devices = f"vms/{key}/reporteddevices"
    for seconds, status in ((1, "wait_for_launch"), (2, "powering_up"), (2, "up")):
        stage.advance(seconds)
        assert stage.status(f"vms/{key}") == status
        assert len(stage.get(devices)) == 0
    stage.advance(10)
    assert [row.findtext("name") for row in stage.get(devices)] == ["lo", "eth0"]
    text = stage.get(devices)[1].findtext("ips/ip/address")
    assert len(stage.get(f"vms?search=ip%3D{text}")) == 1


@proves("vm-booted-silent", lines=("without-agent web-*",))
def a_vm_without_guest_agent(stage: Stage) -> None:
    key = stage.new_vm()
    stage.ok("POST", f"vms/{key}/start", _START)
    stage.advance(50)
    assert stage.status(f"vms/{key}") == "powering_up"
    stage.advance(30)
    assert stage.status(f"vms/{key}") == "up"
    assert len(stage.get(f"vms/{key}/reporteddevices")) == 0


@proves("vm-first-run", "vm-initialization-mixed")
def cloud_init_is_for_the_first_run(stage: Stage) -> None:
    script = (
        "<initialization><custom_script>#cloud-config</custom_script></initialization>"
    )
    key = stage.new_vm(more=script)
    flags = ("use_cloud_init", "use_sysprep")
    mixed = "".join(f"<{flag}>true</{flag}>" for flag in flags)
    mixed = f"<action>{mixed}</action>"
    assert stage.refused("POST", f"vms/{key}/start", mixed).startswith("409")
    record = stage.engine.records.get("vm", key)
    assert record is not None
    for body, is_applied in (
        (_START, True),
        (_START, False),
        ("<action><use_cloud_init>true</use_cloud_init></action>", True),
    ):
        stage.ok("POST", f"vms/{key}/start", body)
        assert record.extra["applied"] is is_applied
        stage.ok("POST", f"vms/{key}/stop", _START)
        stage.advance(5)


@proves("vm-locked", "vm-start-running", "vm-not-running", "vm-stopping", "vm-stopped")
def refused_starts_and_stops(stage: Stage) -> None:
    key = stage.ok("POST", "vms", vm_body()).attrib["id"]
    text = stage.refused("POST", f"vms/{key}/start", _START)
    assert (
        text == "409 [Cannot run VM: VM is locked. Please try again in a few minutes.]"
    )
    stage.advance(5)
    for action in ("stop", "shutdown"):
        text = stage.refused("POST", f"vms/{key}/{action}", _START)
        assert text == f"409 [Cannot {action} VM. VM is not running.]"
    stage.ok("POST", f"vms/{key}/start", _START)
    assert stage.refused("POST", f"vms/{key}/start", _START).startswith("409")
    stage.ok("POST", f"vms/{key}/stop", "<action><force>true</force></action>")
    assert stage.status(f"vms/{key}") == "powering_down"
    stage.advance(3)
    assert stage.status(f"vms/{key}") == "down"


@proves("vm-shutdown-ignored", lines=("ignore-shutdown web-*",))
def a_guest_ignores_a_shutdown(stage: Stage) -> None:
    key = stage.run_vm()
    stage.ok("POST", f"vms/{key}/shutdown", _START)
    stage.advance(60)
    assert stage.status(f"vms/{key}") == "up"
    stage.ok("POST", f"vms/{key}/stop", _START)
    stage.advance(60)
    assert stage.status(f"vms/{key}") == "down"


@proves("vm-no-host")
def no_host_has_room(stage: Stage) -> None:
    more = f"<memory>{300 * _GIB}</memory>"
    key = stage.new_vm(more=more)
    text = stage.refused("POST", f"vms/{key}/start", _START)
    assert text.startswith("409 [Cannot run VM. There is no host")


@proves("vm-removed", "vm-remove-running", "vm-remove-suspended", "vm-delete-protected")
def a_vm_is_removed_with_its_disks(stage: Stage) -> None:
    key = stage.run_vm()
    disk = stage.get(f"vms/{key}/diskattachments")[0].attrib["id"]
    text = stage.refused("DELETE", f"vms/{key}")
    assert text == "409 [Cannot remove VM. VM is running.]"
    stage.set("vm", "web-1", status="suspended")
    assert "suspended" in stage.refused("DELETE", f"vms/{key}")
    stage.set("vm", "web-1", status="down")
    protected = "<vm><delete_protected>{}</delete_protected></vm>"
    stage.ok("PUT", f"vms/{key}", protected.format("true"))
    assert "Delete protection" in stage.refused("DELETE", f"vms/{key}")
    stage.ok("PUT", f"vms/{key}", protected.format("false"))
    stage.ok("DELETE", f"vms/{key}")
    assert stage.refused("GET", f"vms/{key}") == "404"
    assert stage.refused("GET", f"disks/{disk}") == "404"


@proves("vm-detach-only", "vm-detach-only-template", "vm-detach-only-snapshots")
def disks_may_stay(stage: Stage) -> None:
    thin = stage.new_vm("thin", query="?clone=false")
    text = stage.refused("DELETE", f"vms/{thin}?detach_only=true")
    assert "with detaching disks, VM is based from template" in text
    key = stage.new_vm(query="?clone=true")
    disk = stage.get(f"vms/{key}/diskattachments")[0].attrib["id"]
    stage.set("vm", "web-1", snapshots=1)
    assert stage.refused("DELETE", f"vms/{key}?detach_only=true").startswith("409")
    stage.set("vm", "web-1", snapshots=0)
    stage.ok("DELETE", f"vms/{key}?detach_only=true")
    assert stage.status(f"disks/{disk}") == "ok"


@proves("vm-updated", "vm-next-run")
def memory_of_a_running_vm_changes_later(stage: Stage) -> None:
    key = stage.run_vm()
    body = f"<vm><comment>c</comment><memory>{2 * _GIB}</memory></vm>"
    stage.ok("PUT", f"vms/{key}", body)
    vm = stage.get(f"vms/{key}")
    assert vm.findtext("comment") == "c"
    assert vm.findtext("memory") == str(_GIB)
    assert vm.findtext("next_run_configuration_exists") == "true"
    stage.ok("POST", f"vms/{key}/stop", _START)
    stage.advance(5)
    vm = stage.get(f"vms/{key}")
    assert vm.findtext("memory") == str(2 * _GIB)
    assert vm.findtext("next_run_configuration_exists") == "false"


@proves(
    "nic-created",
    "nic-name-taken",
    "nic-mac-taken",
    "nic-changed",
    "nic-removed",
    "nic-plugged",
)
def nics(stage: Stage) -> None:
    key = stage.new_vm()
    path = f"vms/{key}/nics"
    nic = stage.ok("POST", path, "<nic><name>nic1</name></nic>")
    mac = nic.findtext("mac/address")
    assert mac
    assert stage.refused("POST", path, "<nic><name>nic1</name></nic>").startswith("409")
    taken = f"<nic><name>nic2</name><mac><address>{mac}</address></mac></nic>"
    assert mac in stage.refused("POST", path, taken)
    body = f"<nic><vnic_profile id='{PROFILE}'/></nic>"
    stage.ok("PUT", f"{path}/{nic.attrib['id']}", body)
    stage.ok("POST", f"vms/{key}/start", _START)
    stage.advance(20)
    assert stage.refused("DELETE", f"{path}/{nic.attrib['id']}").startswith("409")
    stage.ok("POST", f"vms/{key}/stop", _START)
    stage.advance(20)
    stage.ok("DELETE", f"{path}/{nic.attrib['id']}")
    assert len(stage.get(path)) == 0


@proves("profile-created", "profile-name-taken", "profile-removed", "profile-in-use")
def vnic_profiles(stage: Stage) -> None:
    network = seed.identifier("network")
    body = f"<vnic_profile><name>p</name><network id='{network}'/></vnic_profile>"
    profile = stage.ok("POST", "vnicprofiles", body).attrib["id"]
    assert stage.refused("POST", "vnicprofiles", body).startswith("409")
    vm = stage.new_vm()
    nic = f"<nic><name>nic1</name><vnic_profile id='{profile}'/></nic>"
    key = stage.ok("POST", f"vms/{vm}/nics", nic).attrib["id"]
    assert "web-1" in stage.refused("DELETE", f"vnicprofiles/{profile}")
    stage.ok("DELETE", f"vms/{vm}/nics/{key}")
    stage.ok("DELETE", f"vnicprofiles/{profile}")


@proves("disk-created", "disk-ready", "disk-job-ended", "disk-locked", "disk-related")
def a_disk_is_ok_before_its_job_ends(stage: Stage) -> None:
    disk = stage.ok("POST", "disks", disk_body())
    key = disk.attrib["id"]
    assert disk.findtext("status") == "locked"
    text = stage.refused("DELETE", f"disks/{key}")
    assert "The following disks are locked: data-1." in text
    stage.advance(1.1)
    assert stage.status(f"disks/{key}") == "ok"
    text = stage.refused("DELETE", f"disks/{key}")
    assert "Related operation is currently in progress. Please try again later." in text
    stage.advance(0.5)
    stage.ok("DELETE", f"disks/{key}")


@proves("disk-id-taken")
def an_id_that_exists(stage: Stage) -> None:
    body = disk_body(more="").replace("<disk>", f"<disk id='{ABSENT}'>")
    assert stage.ok("POST", "disks", body).attrib["id"] == ABSENT
    stage.advance(10)
    assert stage.refused("POST", "disks", body).startswith("500")


@proves("disk-id-taken-later", lines=("taken-id-fails-later",))
def an_id_that_exists_fails_later(stage: Stage) -> None:
    body = disk_body().replace("<disk>", f"<disk id='{ABSENT}'>")
    stage.ok("POST", "disks", body)
    stage.advance(10)
    reply = stage.reply("POST", "disks?correlation_id=again", body)
    assert reply.status == 202
    (job,) = stage.get("jobs?search=correlation_id%3Dagain")
    assert job.findtext("status") == "failed"
    assert stage.status(f"disks/{ABSENT}") == "ok"


@proves(
    "disk-configuration",
    "disk-small",
    "disk-no-domain",
    "disk-low-space",
    "disk-domain-status",
)
def invalid_disks(stage: Stage) -> None:
    block = disk_body().replace(NFS, _ISCSI)
    thin = block.replace("<sparse>false", "<sparse>true")
    text = stage.refused("POST", "disks", thin)
    assert "(RAW thin) is incompatible with the storage domain type" in text
    cow = thin.replace("raw", "cow")
    stage.ok("POST", "disks", cow)
    assert stage.refused("POST", "disks", disk_body(size=1024)).startswith("400")
    bare = (
        "<disk><format>raw</format><provisioned_size>1048576</provisioned_size></disk>"
    )
    assert stage.refused("POST", "disks", bare).startswith("400")
    stage.set("storage_domain", seed.NFS, available=6)
    text = stage.refused("POST", "disks", disk_body(size=2 * _GIB))
    assert "Low disk space on Storage Domain nfs-1" in text
    stage.set("storage_domain", seed.NFS, status="maintenance")
    text = stage.refused("POST", "disks", disk_body())
    assert "The relevant Storage Domain's status is maintenance" in text


@proves("disk-updated", "disk-resized", "disk-equal", "disk-shrunk", "disk-resize-vm")
def a_disk_grows(stage: Stage) -> None:
    key = stage.new_disk()
    body = "<disk><provisioned_size>{}</provisioned_size></disk>"
    stage.ok("PUT", f"disks/{key}", body.format(_GIB))
    assert stage.status(f"disks/{key}") == "ok"
    text = stage.refused("PUT", f"disks/{key}", body.format(_GIB - 1))
    assert "New disk size must be larger than the current disk size" in text
    stage.ok("PUT", f"disks/{key}", body.format(2 * _GIB))
    assert stage.status(f"disks/{key}") == "locked"
    assert stage.get(f"disks/{key}").findtext("provisioned_size") == str(_GIB)
    stage.advance(5)
    assert stage.get(f"disks/{key}").findtext("provisioned_size") == str(2 * _GIB)
    stage.attach(stage.new_vm(), key)
    stage.set("vm", "web-1", status="powering_up")
    text = stage.refused("PUT", f"disks/{key}", body.format(3 * _GIB))
    assert "VM status is illegal" in text


@proves("disk-illegal", "disk-event", lines=("fail disk-ready",))
def an_illegal_disk_can_only_be_removed(stage: Stage) -> None:
    key = stage.new_disk()
    (event,) = stage.get("events?search=severity%3Derror")
    assert event.findtext("description", "").endswith("failed to complete.")
    assert stage.status(f"disks/{key}") == "illegal"
    text = stage.refused("PUT", f"disks/{key}", "<disk><alias>x</alias></disk>")
    assert "Illegal disks can only be deleted" in text
    stage.ok("DELETE", f"disks/{key}")


@proves("disk-plugged", "disk-removed", "disk-vms")
def a_disk_of_a_down_vm_is_removed(stage: Stage) -> None:
    vm, disk = stage.run_vm(), stage.new_disk()
    stage.attach(vm, disk, "<active>true</active>")
    users = stage.get(f"disks/{disk}?all_content=true").findall("vms/vm")
    assert [user.attrib["id"] for user in users] == [vm]
    assert stage.get(f"disks/{disk}").find("vms/vm") is None
    assert stage.get("disks").find("disk/vms/vm") is None
    text = stage.refused("DELETE", f"disks/{disk}")
    assert (
        text == "409 [Cannot remove Virtual Disk. At least one of the VMs is not down.]"
    )
    stage.ok("POST", f"vms/{vm}/stop", _START)
    stage.advance(5)
    stage.ok("DELETE", f"disks/{disk}")
    assert len(stage.get(f"vms/{vm}/diskattachments")) == 1


@proves(
    "attachment-created",
    "attachment-again",
    "attachment-elsewhere",
    "attachment-boot",
    "attachment-status",
)
def attachments(stage: Stage) -> None:
    vm, other, disk = stage.new_vm(), stage.new_vm("web-2"), stage.new_disk()
    attachment = stage.attach(vm, disk)
    assert attachment.attrib["id"] == disk
    assert attachment.findtext("active") == "false"
    path = "vms/{}/diskattachments"
    text = stage.refused("POST", path.format(vm), attachment_body(disk))
    assert "The disk is already attached to VM" in text
    text = stage.refused("POST", path.format(other), attachment_body(disk))
    assert "not shareable and is already attached" in text
    second = stage.new_disk("data-2")
    boot = attachment_body(second).replace("false", "true")
    assert stage.refused("POST", path.format(vm), boot).startswith("409")
    stage.set("vm", "web-1", status="powering_up")
    text = stage.refused("POST", path.format(vm), attachment_body(second))
    assert "VM status is illegal" in text


@proves("attachment-new-disk")
def an_attachment_creates_a_disk(stage: Stage) -> None:
    vm = stage.new_vm()
    body = attachment_body("x").replace("<disk id='x'/>", disk_body())
    reply = stage.reply("POST", f"vms/{vm}/diskattachments", body)
    assert reply.status == 202
    assert len(stage.get(f"vms/{vm}/diskattachments")) == 2


@proves("attachment-plug-failed", "attachment-changed")
def hot_plug(stage: Stage) -> None:
    vm, disk = stage.run_vm(), stage.new_disk()
    stage.engine.settings.add("hot-plug-fails web-*")
    path = f"vms/{vm}/diskattachments"
    active = attachment_body(disk, "<active>true</active>")
    assert "Failed to hot-plug disk" in stage.refused("POST", path, active)
    stage.attach(vm, disk)
    change = "<disk_attachment><active>true</active></disk_attachment>"
    assert "Failed to hot-plug disk" in stage.refused("PUT", f"{path}/{disk}", change)
    stage.engine.settings.replace([])
    stage.ok("PUT", f"{path}/{disk}", change)
    assert stage.get(f"{path}/{disk}").findtext("active") == "true"


@proves("attachment-detached", "attachment-disk-removed", "attachment-detach-status")
def a_disk_is_detached(stage: Stage) -> None:
    vm, disk = stage.new_vm(), stage.new_disk()
    stage.attach(vm, disk)
    path = f"vms/{vm}/diskattachments/{disk}"
    stage.set("vm", "web-1", status="powering_down")
    assert "VM status is illegal" in stage.refused("DELETE", path)
    stage.set("vm", "web-1", status="down")
    stage.ok("DELETE", path)
    assert stage.status(f"disks/{disk}") == "ok"
    stage.attach(vm, disk)
    stage.ok("DELETE", f"{path}?detach_only=false")
    assert stage.refused("GET", f"disks/{disk}") == "404"


@proves("vm-migrating", "vm-migrated", "vm-migrate-status")
def a_vm_is_migrated_to_another_host(stage: Stage) -> None:
    key = stage.run_vm()
    host = stage.get(f"vms/{key}").find("host")
    assert host is not None
    stage.ok("POST", f"vms/{key}/migrate", _START)
    assert stage.status(f"vms/{key}") == "migrating"
    text = stage.refused("POST", f"vms/{key}/migrate", _START)
    assert text == "409 [Cannot migrate VM. VM is not running.]"
    stage.advance(2.5)
    other = stage.get(f"vms/{key}").find("host")
    assert stage.status(f"vms/{key}") == "up"
    assert other is not None
    assert other.attrib["id"] != host.attrib["id"]


@proves("disk-quota", lines=(f"quota {seed.NFS} 10",))
def a_quota_is_not_exceeded(stage: Stage) -> None:
    disk = stage.new_disk()
    text = "409 [Cannot {} Virtual Disk. Quota has reached its Storage limit.]"
    body = disk_body("data-2", size=2 * _GIB)
    assert stage.refused("POST", "disks", body) == text.format("add")
    body = f"<disk><provisioned_size>{3 * _GIB}</provisioned_size></disk>"
    assert stage.refused("PUT", f"disks/{disk}", body) == text.format("extend")
    stage.new_disk("data-3")


def _by_another(stage: Stage, method: str, path: str, body: str = "") -> None:
    """Send a request that takes its time while the test sends others."""
    request = {"do": "request", "method": method, "path": path, "body": body}
    control.carry_out(stage.service, request)


_RELATED = "Related operation is currently in progress. Please try again later."


@proves("operation-ended", "operation-locked", lines=("delay operation-ended 2",))
def requests_for_one_vm_exclude_each_other_or_overlap(stage: Stage) -> None:
    disks = [stage.new_disk(f"data-{number}") for number in range(3)]
    active = "<active>true</active>"
    vm = stage.new_vm()
    _by_another(stage, "POST", f"vms/{vm}/start", _START)
    text = stage.refused("POST", f"vms/{vm}/stop", _START)
    assert text == f"409 [Cannot stop VM. {_RELATED}]"
    stage.advance(20)
    path = f"vms/{vm}/diskattachments"
    _by_another(stage, "POST", path, attachment_body(disks[0], active))
    text = stage.refused("DELETE", f"{path}/{disks[0]}")
    assert text == f"409 [Cannot detach Virtual Disk. {_RELATED}]"
    # Other disks of the VM are attached, and the VM is shut down, at the same time.
    _by_another(stage, "POST", path, attachment_body(disks[1], active))
    _by_another(stage, "POST", f"vms/{vm}/shutdown", _START)
    assert [job.findtext("status") for job in stage.get("jobs")].count("started") == 3
    stage.advance(5)
    _by_another(stage, "DELETE", f"{path}/{disks[0]}")


@proves("call-permit")
def a_role_without_a_permit(stage: Stage) -> None:
    disk = stage.new_disk()
    role = {"do": "role", "user": seed.USER, "role": "DiskOperator"}
    control.carry_out(stage.service, role)
    text = "403 [User is not authorized to perform this action.]"
    assert stage.refused("POST", "vms", vm_body()) == text
    assert stage.get("vms") is not None
    assert stage.reply("DELETE", f"disks/{disk}").status == 200
