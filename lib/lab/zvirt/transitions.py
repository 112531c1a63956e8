"""The rules of the simulated engine: the source of each, and what is assumed. Pure.

Facts are those published about oVirt Engine 4.5 and its API model; each row names the
part of the API. What they leave open is in the column "assumed". Code refers to rules
by key alone (`Engine.rule`), so that a behaviour without a row cannot be added.
"""

import dataclasses
from collections.abc import Mapping

_SSO = "1.1 SSO"
_CALLS = "1.2 Conventions"
_SEARCH = "1.3 Search"
_VM = "1.4 VM"
_NIC = "1.5 NICs, networks"
_DISK = "1.6 Disks and attachments"
_DOMAIN = "1.7 Storage domains, other"
_TIMING = "1.8 Timing and locks"


@dataclasses.dataclass(frozen=True, slots=True)
class EngineRule:
    """One rule. section: the facts. assumed: what they do not contain.

    status, text: of a refusal; the text names its fields in braces. delay_s: of a
    transition that happens later; None for any other rule.
    """

    section: str
    behaviour: str
    assumed: str = ""
    status: int = 0
    text: str = ""
    delay_s: float | None = None


def _refusal(
    section: str, behaviour: str, status: int, text: str, assumed: str = ""
) -> EngineRule:
    return EngineRule(section, behaviour, assumed, status, text)


def _later(
    section: str, behaviour: str, delay_s: float, assumed: str = ""
) -> EngineRule:
    return EngineRule(section, behaviour, assumed, delay_s=delay_s)


_SSO_RULES = {
    "sso-token": EngineRule(
        _SSO,
        "the password grant returns access_token, scope, exp, token_type",
        "token_type bearer; exp in milliseconds",
    ),
    "sso-wrong-password": _refusal(
        _SSO,
        "a wrong password is 400 access_denied",
        400,
        "Cannot authenticate user '{user}': The username or password is incorrect..",
        "text; the same for an unknown user",
    ),
    "sso-locked": _refusal(
        _SSO,
        "an account is locked after repeated failures, also for the right password",
        400,
        "Cannot authenticate user '{user}': The user account is disabled or locked.",
        "5 failures in a row, for an hour",
    ),
    "sso-profile": _refusal(
        _SSO,
        "a user without profile is refused",
        400,
        "Cannot authenticate user '{user}': No valid profile found in credentials..",
        "text",
    ),
    "sso-grant": _refusal(
        _SSO, "an unknown grant is 400", 400, "Unsupported grant type {grant}.", "text"
    ),
    "sso-incomplete": _refusal(
        _SSO,
        "a missing parameter is 400 invalid_request",
        400,
        "The request is missing a required parameter: {name}.",
        "text",
    ),
    "sso-other-scope": EngineRule(
        _SSO, "errors of other scopes have error and error_description"
    ),
    "sso-logout": EngineRule(_SSO, "logout ends the token; the reply is {}"),
    "sso-expired": EngineRule(_SSO, "a token ends after SSO_TOKEN_TIMEOUT", "360000 s"),
    "sso-idle": EngineRule(
        _SSO,
        "a token that is not used for the idle time is refused",
        "as reported from the field; by code the session would be created again",
    ),
    "sso-unauthenticated": _refusal(
        _SSO, "401 is HTML with WWW-Authenticate, never a fault", 401, ""
    ),
    "sso-basic": EngineRule(_SSO, "Basic authentication is accepted"),
    "sso-ca": EngineRule(_SSO, "the CA is public: services/pki-resource"),
}
_CALL_RULES = {
    "call-root": EngineRule(_CALLS, "the root names product, version and instance_id"),
    "call-version": _refusal(
        _CALLS,
        "a header Version other than 4 is 400",
        400,
        "Unsupported version",
        "text",
    ),
    "call-media": _refusal(
        _CALLS, "a body that is not XML is 415", 415, "", "JSON is not simulated"
    ),
    "call-accept": _refusal(
        _CALLS, "an Accept without XML is 406", 406, "", "JSON is not simulated"
    ),
    "call-path": _refusal(
        _CALLS, "an unknown path is 404 with HTML of the container", 404, "", "HTML"
    ),
    "call-method": _refusal(_CALLS, "an unknown method is 405", 405, "", "HTML"),
    "call-absent": _refusal(_CALLS, "a missing entity is 404, empty", 404, ""),
    "call-reference": _refusal(
        _CALLS,
        "a missing referenced entity is 404 with a fault",
        404,
        "Entity not found: {name}",
    ),
    "call-malformed-id": _refusal(
        _CALLS, "an ID that is no UUID is 400", 400, "Invalid UUID string: {id}", "text"
    ),
    "call-malformed-body": _refusal(
        _CALLS, "a body that is no document of the API is 400", 400, "{why}", "text"
    ),
    "call-incomplete": _refusal(
        _CALLS,
        "missing elements are 400, Incomplete parameters",
        400,
        "{type} [{names}] required for {operation}",
        "bootable of an attachment, which the model requires, is not: Ansible omits it",
    ),
    "call-enum": _refusal(
        _CALLS,
        "an unknown enum value is 400",
        400,
        "Invalid Enum value {value} for {name}",
        "order of the words",
    ),
    "call-element": _refusal(
        _CALLS,
        "an element that the type or the operation does not have is 400",
        400,
        "Unexpected element {name} in {operation}",
        "stricter than the engine, which ignores it",
    ),
    "call-correlation": _refusal(
        _CALLS,
        "a correlation ID has 1 to 50 characters",
        400,
        "size must be between 1 and 50",
        "text",
    ),
    "call-created": EngineRule(_CALLS, "a synchronous create is 201 with Location"),
    "call-accepted": EngineRule(
        _CALLS, "a create with tasks is 202 with creation_status"
    ),
    "call-expect-created": EngineRule(
        _CALLS, "Expect: 201-created blocks until the tasks end", "then 201"
    ),
    "call-async": EngineRule(
        _CALLS, "async=true or Expect: 202-accepted: an action does not block", "202"
    ),
    "call-action": EngineRule(
        _CALLS, "an action is 200 with status complete and its job"
    ),
    "call-forbidden": _refusal(
        _CALLS,
        "a missing permit is 403",
        403,
        "User is not authorized to perform this action.",
    ),
    "call-hidden": EngineRule(
        _CALLS, "objects without permission are in no list, and 404 by ID"
    ),
    "call-permit": _refusal(
        _CALLS,
        "a user whose roles lack the permit of a request gets 403",
        403,
        "User is not authorized to perform this action.",
        "roles of the user count for all objects",
    ),
    "call-follow": EngineRule(_CALLS, "follow= includes linked objects"),
    "call-follow-unknown": _refusal(
        _CALLS,
        "follow= of a link that the type does not have is 400",
        400,
        "Cannot follow link {name}",
        "all of it",
    ),
    "call-links": EngineRule(
        _CALLS, "collections not followed are links, actions are listed"
    ),
    "call-all-content": EngineRule(
        _CALLS, "all_content adds console and soundcard_enabled"
    ),
    "call-max": EngineRule(_CALLS, "max= limits a list; without it, all are returned"),
    "call-empty": EngineRule(_CALLS, "what no component needs exists, empty"),
    "operation-ended": _later(
        _TIMING, "a request holds its locks until it is answered", 0.0, "no time"
    ),
    "operation-locked": _refusal(
        _TIMING,
        "requests exclude each other by VM, disk and boot disk; others overlap",
        409,
        "Cannot {action} {type}. Related operation is currently in progress. Please try"
        " again later.",
        "start, stop, shutdown and migration hold the VM",
    ),
    "job-shown": EngineRule(_CALLS, "jobs are found by their correlation ID"),
    "event-shown": EngineRule(
        _DOMAIN, "events have index, code, severity; from= skips"
    ),
}
_SEARCH_RULES = {
    "search-filter": EngineRule(
        _SEARCH, "fields, and, or, parentheses, quotes, wildcard *; others literal"
    ),
    "search-case": EngineRule(_SEARCH, "case is ignored without case_sensitive=true"),
    "search-order": EngineRule(_SEARCH, "sortby FIELD asc or desc"),
    "search-page": EngineRule(_SEARCH, "page N with max=P", "100 without max"),
    "search-cross": EngineRule(
        _SEARCH,
        "TYPE.FIELD searches related objects: vm.name of templates",
        "storage.name of disks, clusters.name of data centers, as Ansible asks",
    ),
    "search-text": EngineRule(_SEARCH, "a bare word is searched in all texts"),
    "search-invalid": _refusal(
        _SEARCH,
        "an unknown field, a bad value, ' and ; are 400",
        400,
        "Error in Search text: {why}",
        "text",
    ),
}
_VM_RULES = {
    "vm-created": EngineRule(_VM, "created: 202, image_locked, disks of the template"),
    "vm-created-empty": EngineRule(
        _VM, "from Blank: 201, down", "no task without disks"
    ),
    "vm-cloned": EngineRule(
        _VM, "clone=true: the template becomes Blank, disks are copied"
    ),
    "vm-linked": EngineRule(
        _VM, "clone=false: the template is kept", "1/10 of the delay"
    ),
    "vm-memory": EngineRule(
        _VM, "guaranteed and maximum memory are computed", "1x and 4x"
    ),
    "vm-copied": _later(_TIMING, "image_locked -> down, its disks ok", 1.0, "per disk"),
    "vm-name-taken": _refusal(
        _VM,
        "a name is unique in a data center",
        409,
        "Cannot add VM. The VM name is already in use.",
    ),
    "vm-template-locked": _refusal(
        _VM,
        "the template must be ok",
        409,
        "Cannot add VM. Template's Image is {status} (temporarily).",
    ),
    "vm-guaranteed-memory": _refusal(
        _VM,
        "guaranteed memory is at most the memory",
        400,
        "Cannot {action} VM. Physical Memory Guaranteed cannot exceed Memory Size.",
    ),
    "vm-started": EngineRule(_TIMING, "down -> wait_for_launch on a host with room"),
    "vm-launched": _later(_TIMING, "wait_for_launch -> powering_up", 2.0),
    "vm-booted": _later(_TIMING, "powering_up -> up, with a guest agent", 2.0),
    "vm-booted-silent": _later(_VM, "powering_up -> up without guest agent", 60.0),
    "vm-agent": _later(_TIMING, "the guest agent reports lo and eth<N>", 10.0),
    "vm-first-run": EngineRule(
        _VM, "cloud-init is applied at the first run, or with use_cloud_init"
    ),
    "vm-initialization-mixed": _refusal(
        _VM,
        "cloud-init, sysprep and ignition exclude each other",
        409,
        "Cannot run VM. Only one of cloud-init, sysprep and ignition may be used.",
        "text",
    ),
    "vm-locked": _refusal(
        _VM,
        "a VM with locked image is refused",
        409,
        "Cannot {action} VM: VM is locked. Please try again in a few minutes.",
    ),
    "vm-start-running": _refusal(
        _VM, "a VM that runs is not started", 409, "Cannot run VM. VM is running."
    ),
    "vm-no-boot-disk": _refusal(
        _VM,
        "a boot disk is required",
        409,
        "Cannot run VM without at least one bootable disk.",
    ),
    "vm-no-host": _refusal(
        _TIMING,
        "no host has room, or affinity forbids all",
        409,
        "Cannot run VM. There is no host that satisfies current scheduling constraints."
        " See below for details:, The host {host} did not satisfy internal filter"
        " {filter}.",
        "text after the first sentence",
    ),
    "vm-stopping": EngineRule(_TIMING, "stop and shutdown: up -> powering_down"),
    "vm-stopped": _later(_TIMING, "powering_down -> down", 2.0),
    "vm-not-running": _refusal(
        _VM, "stop of a down VM is 409", 409, "Cannot {action} VM. VM is not running."
    ),
    "vm-migrating": EngineRule(_VM, "migrate: up -> migrating, to a host with room"),
    "vm-migrated": _later(_VM, "migrating -> up, on the other host", 2.0, "delay"),
    "vm-migrate-status": _refusal(
        _VM,
        "only a VM that is up is migrated",
        409,
        "Cannot migrate VM. VM is not running.",
        "text in other statuses than down",
    ),
    "vm-shutdown-ignored": EngineRule(
        _TIMING, "a guest may ignore a shutdown: the VM stays up", "after powering_down"
    ),
    "vm-removed": EngineRule(_VM, "removed with its disks, in down and image_locked"),
    "vm-remove-running": _refusal(
        _VM, "a running VM stays", 409, "Cannot remove VM. VM is running."
    ),
    "vm-remove-suspended": _refusal(
        _VM,
        "a suspended VM stays, with a message of its own",
        409,
        "Cannot remove VM. VM is suspended.",
        "text",
    ),
    "vm-delete-protected": _refusal(
        _VM,
        "a protected VM stays",
        409,
        "Cannot remove VM. Delete protection is enabled. In order to delete, disable"
        " Delete protection first.",
        "status",
    ),
    "vm-detach-only": EngineRule(_VM, "detach_only=true: the disks stay"),
    "vm-detach-only-template": _refusal(
        _VM,
        "detach_only of a VM of a template is refused",
        409,
        "Cannot remove VM with detaching disks, VM is based from template.",
        "status",
    ),
    "vm-detach-only-snapshots": _refusal(
        _VM,
        "detach_only of a VM with snapshots is refused",
        409,
        "Cannot remove VM with detaching disks. VM contains snapshots.",
        "status, text",
    ),
    "vm-updated": EngineRule(_VM, "an update changes what it names, the rest stays"),
    "vm-next-run": EngineRule(
        _VM, "memory and CPU of a running VM change at its next run"
    ),
    "vm-image-illegal": EngineRule(
        _TIMING, "ImageIllegal has no public status: omitted"
    ),
    "devices-shown": EngineRule(_VM, "reporteddevices: empty without guest agent"),
    "tag-created": EngineRule(_VM, "tags have a parent, the root tag"),
    "tag-name-taken": _refusal(
        _VM,
        "a tag's name is unique",
        409,
        "Cannot add Tag. Tag name already exists.",
        "status, text",
    ),
    "tag-assigned": EngineRule(
        _VM, "assigned by ID or name; again: no change", "201 again"
    ),
    "tag-unassigned": EngineRule(_VM, "a tag is unassigned by its ID"),
    "tag-removed": EngineRule(_VM, "a removed tag is unassigned from all VMs"),
    "affinity-created": EngineRule(_VM, "affinity groups of a cluster"),
    "affinity-name-taken": _refusal(
        _VM,
        "a group's name is unique in its cluster",
        409,
        "Cannot add Affinity Group. Affinity Group name already exists.",
        "status, text",
    ),
    "affinity-member": EngineRule(_VM, "VMs are added and removed one by one"),
    "affinity-removed": EngineRule(_VM, "a group is removed, its VMs stay"),
    "affinity-enforced": EngineRule(_VM, "an enforced negative rule keeps VMs apart"),
}
_NIC_RULES = {
    "nic-created": EngineRule(_NIC, "only the name is required; a MAC is assigned"),
    "nic-name-taken": _refusal(
        _NIC,
        "a NIC's name is unique in its VM",
        409,
        "Cannot add Interface. The Network Interface name is already in use.",
        "text",
    ),
    "nic-mac-taken": _refusal(
        _NIC,
        "a MAC address is unique",
        409,
        "Cannot add Interface. MAC Address {mac} is already in use.",
        "status, text",
    ),
    "nic-changed": EngineRule(_NIC, "a NIC is updated"),
    "nic-removed": EngineRule(_NIC, "a NIC is removed from a VM"),
    "nic-plugged": _refusal(
        _NIC,
        "an active NIC of a running VM stays",
        409,
        "Cannot remove Interface. The VM Network Interface is plugged to a running VM.",
        "status, text",
    ),
    "profile-created": EngineRule(_NIC, "vNIC profiles of a network"),
    "profile-name-taken": _refusal(
        _NIC,
        "a profile's name is unique in its network",
        409,
        "Cannot add VM network interface profile. The name is already in use.",
        "status, text",
    ),
    "profile-removed": EngineRule(_NIC, "an unused profile is removed"),
    "profile-in-use": _refusal(
        _NIC,
        "a profile in use stays",
        409,
        "Cannot remove VM network interface profile. It is used by VMs: {name}.",
        "status, text",
    ),
}
_DISK_RULES = {
    "disk-created": EngineRule(
        _DISK, "created: 202, locked; a passed ID is the disk's"
    ),
    "disk-ready": _later(_TIMING, "locked -> ok", 1.0),
    "disk-job-ended": _later(_TIMING, "the job ends after the disk is ok", 0.5),
    "disk-failed": EngineRule(
        _DISK, "a failed job leaves the disk illegal", "illegal, kept"
    ),
    "disk-id-taken": _refusal(
        _DISK,
        "an ID that exists is not validated: an internal error",
        500,
        "Internal Engine Error",
        "status and text; the first of two variants",
    ),
    "disk-id-taken-later": EngineRule(
        _DISK,
        "the second variant: 202, and the job fails; the old disk is unchanged",
        "all of it",
    ),
    "disk-configuration": _refusal(
        _DISK,
        "format and sparse fit the type of the domain",
        400,
        "Cannot add Virtual Disk. Disk configuration ({format} {allocation}) is"
        " incompatible with the storage domain type.",
    ),
    "disk-small": _refusal(
        _DISK,
        "a disk has 1 MiB at least",
        400,
        "Cannot add Virtual Disk. Disk size must be at least 1 MiB.",
        "a limit of the Go client; text",
    ),
    "disk-no-domain": _refusal(
        _DISK,
        "an image disk needs a domain",
        400,
        "Cannot add Virtual Disk. Storage Domain doesn't exist.",
        "text",
    ),
    "disk-low-space": _refusal(
        _TIMING,
        "a domain without room refuses",
        409,
        "Cannot {action} Virtual Disk. Low disk space on Storage Domain {domain}.",
    ),
    "disk-quota": _refusal(
        _DISK,
        "an enforced quota refuses what exceeds it",
        409,
        "Cannot {action} Virtual Disk. Quota has reached its Storage limit.",
        "text; of one domain",
    ),
    "disk-domain-status": _refusal(
        _TIMING,
        "a domain that is not active refuses",
        409,
        "Cannot {action} Virtual Disk. The relevant Storage Domain's status is"
        " {status}.",
    ),
    "disk-updated": EngineRule(_DISK, "alias and description change immediately"),
    "disk-resized": EngineRule(_DISK, "a larger provisioned_size: locked, then ok"),
    "disk-equal": EngineRule(_DISK, "the same size changes nothing"),
    "disk-shrunk": _refusal(
        _DISK,
        "a smaller size is refused",
        400,
        "Cannot edit Virtual Disk. New disk size must be larger than the current disk"
        " size.",
    ),
    "disk-resize-vm": _refusal(
        _DISK,
        "resized only while its VM is up, paused or down",
        409,
        "Cannot extend Virtual Disk. The VM status is illegal.",
        "list of statuses",
    ),
    "disk-locked": _refusal(
        _DISK,
        "a locked disk refuses all",
        409,
        "Cannot {action} Virtual Disk: The following disks are locked: {alias}."
        " Please try again in a few minutes.",
    ),
    "disk-illegal": _refusal(
        _DISK,
        "an illegal disk can only be removed",
        409,
        "Cannot {action} Virtual Disk. Disk is Illegal. Illegal disks can only be"
        " deleted.",
    ),
    "disk-related": _refusal(
        _TIMING,
        "while a job holds the lock",
        409,
        "Cannot {action} Virtual Disk. Related operation is currently in progress."
        " Please try again later.",
    ),
    "disk-plugged": _refusal(
        _DISK,
        "a disk plugged into a VM that is not down stays",
        409,
        "Cannot remove Virtual Disk. At least one of the VMs is not down.",
    ),
    "disk-removed": EngineRule(_DISK, "removed, also from VMs that are down"),
    "disk-vms": EngineRule(
        _DISK, "a disk lists the VMs that it is attached to, with all_content by ID"
    ),
    "disk-event": EngineRule(
        _DISK, "a failed job has an event of severity error", "texts"
    ),
    "attachment-created": EngineRule(
        _DISK, "its ID is the disk's; active defaults to false"
    ),
    "attachment-new-disk": EngineRule(_DISK, "without a disk ID, the disk is created"),
    "attachment-again": _refusal(
        _DISK,
        "attached to this VM already",
        409,
        "Cannot attach Virtual Disk. The disk is already attached to VM.",
    ),
    "attachment-elsewhere": _refusal(
        _DISK,
        "a disk that is not shareable is attached once",
        409,
        "Cannot attach Virtual Disk. The disk is not shareable and is already attached"
        " to a VM.",
    ),
    "attachment-status": _refusal(
        _DISK,
        "attached while the VM is up, paused or down",
        409,
        "Cannot {action} Virtual Disk. The VM status is illegal.",
    ),
    "attachment-boot": _refusal(
        _DISK,
        "a VM has one bootable disk",
        409,
        "Cannot {action} Virtual Disk. Disk {alias} in VM {vm} is already marked as"
        " boot.",
        "status, text",
    ),
    "attachment-plug-failed": _refusal(
        _DISK, "a hot-plug may fail", 400, "Failed to hot-plug disk", "status"
    ),
    "attachment-changed": EngineRule(
        _DISK, "active false and true: hot-unplug and hot-plug"
    ),
    "attachment-detached": EngineRule(
        _DISK, "detach_only defaults to true: the disk stays"
    ),
    "attachment-disk-removed": EngineRule(_DISK, "detach_only=false removes the disk"),
    "attachment-detach-status": _refusal(
        _DISK,
        "detached while the VM is up or down",
        409,
        "Cannot detach Virtual Disk. The VM status is illegal.",
    ),
    "domain-status-omitted": EngineRule(
        _DOMAIN, "/storagedomains has no status but unattached"
    ),
    "domain-status-shown": EngineRule(
        _DOMAIN, "a data center's storagedomains have one"
    ),
    "template-disks": EngineRule(_DOMAIN, "a template has disk attachments"),
}

RULES: Mapping[str, EngineRule] = {
    **_SSO_RULES,
    **_CALL_RULES,
    **_SEARCH_RULES,
    **_VM_RULES,
    **_NIC_RULES,
    **_DISK_RULES,
}
