"""Which permit a request needs, and which the roles of its user have.

Source: ovirt-engine-api-model, Permit; ActionGroup of ovirt-engine. A user without an
account in the engine is an administrator: requests of the control socket.
"""

from collections.abc import Mapping

from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord

_NIC, _STORAGE, _TAG = (
    "configure_vm_network",
    "configure_vm_storage",
    "tag_management",
)
_POWER = "vm_basic_operations"
NEEDED: Mapping[str, str] = {
    "POST vms": "create_vm",
    "PUT vms/{id}": "edit_vm_properties",
    "DELETE vms/{id}": "delete_vm",
    "POST vms/{id}/start": _POWER,
    "POST vms/{id}/stop": _POWER,
    "POST vms/{id}/shutdown": _POWER,
    "POST vms/{id}/migrate": _POWER,
    "POST vms/{id}/nics": _NIC,
    "PUT vms/{id}/nics/{id}": _NIC,
    "DELETE vms/{id}/nics/{id}": _NIC,
    "POST vms/{id}/diskattachments": _STORAGE,
    "PUT vms/{id}/diskattachments/{id}": _STORAGE,
    "DELETE vms/{id}/diskattachments/{id}": _STORAGE,
    "POST disks": "create_disk",
    "PUT disks/{id}": "edit_disk_properties",
    "DELETE disks/{id}": "delete_disk",
    "POST tags": _TAG,
    "PUT tags/{id}": _TAG,
    "DELETE tags/{id}": _TAG,
}
"""Permits by request; any other needs none."""


def check(engine: Engine, user: str, kind: str) -> None:
    """Check that a user may send a kind of request, such as "POST disks".

    Raises:
        Refused: no role of the user has the permit.
    """
    needed = NEEDED.get(kind)
    if needed is None:
        return
    account = account_of(engine, user)
    if account is not None and needed not in _held(engine, account):
        engine.refuse("call-permit")


def account_of(engine: Engine, user: str) -> EngineRecord | None:
    """Return the user of a name with profile; None: the engine has none."""
    for row in engine.records.all("user"):
        if row.entity.user_name == f"{user}-authz":
            return row
    return None


def _held(engine: Engine, account: EngineRecord) -> frozenset[str]:
    roles = {
        row.entity.role.id
        for row in engine.records.all("permission")
        if row.entity.user and row.entity.user.id == account.key
    }
    return frozenset(
        permit.name
        for row in engine.records.all("role")
        if row.key in roles
        for permit in row.entity.permits or ()
    )
