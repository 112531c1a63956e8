"""What refused requests mean: status first, text second."""

import pytest

from lib.cloud import errors
from lib.cloud.zvirt import engine_refusals
from lib.lab.zvirt.transitions import RULES
from tests.lib.cloud.zvirt.engines import FAULT, HTML

TEXTS = {
    "Cannot add VM. The VM name is already in use.": (409, errors.AlreadyExists),
    "Cannot run VM: VM is locked. Please try again in a few minutes.": (
        409,
        errors.Busy,
    ),
    "Cannot run VM. VM is not running.": (409, errors.InUse),
    "Cannot run VM without at least one bootable disk.": (409, errors.InvalidRequest),
    "Cannot add VM. Physical Memory Guaranteed cannot exceed Memory Size": (
        400,
        errors.InvalidRequest,
    ),
    "Disk configuration (RAW thin) is incompatible with the storage domain type.": (
        400,
        errors.InvalidRequest,
    ),
    "New disk size must be larger than the current disk size.": (
        400,
        errors.InvalidRequest,
    ),
    "The following disks are locked: a. Please try again in a few minutes.": (
        409,
        errors.Busy,
    ),
    "Cannot attach Virtual Disk. The disk is already attached to VM.": (
        409,
        errors.AlreadyExists,
    ),
    "The disk is not shareable and is already attached to a VM.": (
        409,
        errors.AttachedElsewhere,
    ),
    "Cannot detach Virtual Disk. The VM status is illegal.": (409, errors.Busy),
    "Failed to hot-plug disk": (400, errors.Busy),
    "Cannot remove Virtual Disk. At least one of the VMs is not down.": (
        409,
        errors.InUse,
    ),
    "Related operation is currently in progress. Please try again later.": (
        409,
        errors.Busy,
    ),
    "Low disk space on Storage Domain nfs-1.": (409, errors.Unplaceable),
    "The relevant Storage Domain's status is maintenance.": (409, errors.InUse),
    "There is no host that satisfies current scheduling constraints.": (
        409,
        errors.Unplaceable,
    ),
    # Of several messages, 400 wins: the text of the other one still counts.
    "Something is wrong, The disk image is being copied.": (400, errors.Busy),
    # Unknown or localized texts decide nothing.
    "Машина заблокирована": (409, errors.Busy),
    "Неверный параметр": (400, errors.InvalidRequest),
}
STATUSES = {
    "a missing permit": (403, FAULT.format("not authorized"), errors.Forbidden),
    "a missing reference": (
        404,
        FAULT.format("Entity not found: x"),
        errors.InvalidRequest,
    ),
    "a gateway's page for an unknown path": (404, HTML.decode(), errors.Unavailable),
    "a 404 without a body is no proof": (404, "", errors.Unavailable),
    "a gateway's page for a bad request": (400, HTML.decode(), errors.Unavailable),
    "a bad gateway": (502, HTML.decode(), errors.Unavailable),
    "an engine that starts": (503, HTML.decode(), errors.Unavailable),
    "an internal error": (500, FAULT.format("Internal"), errors.Unavailable),
    "an error without a body": (500, "", errors.Unavailable),
    "a redirection to a login page": (302, HTML.decode(), errors.Unavailable),
    "an unknown method": (405, HTML.decode(), errors.InvalidRequest),
    "a conflict without a text": (409, "", errors.Busy),
    "a fault within an action": (
        409,
        f"<action>{FAULT.format('VM is running')}</action>",
        errors.InUse,
    ),
    "a malformed document": (409, "<fault><reason>", errors.Busy),
}
SIGN_ON = {
    "a wrong password": (
        400,
        b'{"error_code": "access_denied", "error": "incorrect"}',
        errors.Unauthenticated,
        "user and password: rejected",
    ),
    "a locked account": (
        400,
        b'{"error_code": "access_denied",'
        b' "error": "The user account is disabled or locked"}',
        errors.Unauthenticated,
        "user and password: the account is disabled or locked",
    ),
    "the shape of OpenID Connect": (
        400,
        b'{"error": "access_denied", "error_description": "wrong"}',
        errors.Unauthenticated,
        "user and password: rejected",
    ),
    "an expired grant": (
        400,
        b'{"error_code": "invalid_grant", "error": "The provided authorization grant'
        b' for the auth code has expired."}',
        errors.Unauthenticated,
        "the single sign-on refuses: invalid_grant",
    ),
    "an error of the server": (
        400,
        b'{"error_code": "server_error", "error": "x"}',
        errors.Unavailable,
        "status 400 from the single sign-on",
    ),
    "a web page": (
        502,
        HTML,
        errors.Unavailable,
        "status 502 with a web page: a gateway, or not an engine",
    ),
    "JSON of another server": (
        404,
        b"[]",
        errors.Unavailable,
        "status 404 from the single sign-on",
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_has_one_class(text: str) -> None:
    status, kind = TEXTS[text]
    error = engine_refusals.error(
        status, FAULT.format(text).encode(), "create vms", "x"
    )
    assert type(error) is kind
    assert error.was_rejected
    assert text in str(error)


@pytest.mark.parametrize("case", STATUSES)
def test_a_status_counts_before_its_text(case: str) -> None:
    status, body, kind = STATUSES[case]
    error = engine_refusals.error(status, body.encode(), "create vms")
    assert type(error) is kind
    assert "<" not in str(error)


@pytest.mark.parametrize(
    "rule", [key for key, rule in RULES.items() if rule.text and rule.status == 409]
)
def test_every_conflict_of_the_simulated_engine_is_known_or_busy(rule: str) -> None:
    text = RULES[rule].text
    error = engine_refusals.error(409, FAULT.format(text).encode(), "create vms")
    assert not isinstance(error, errors.Unavailable | errors.NotFound)


@pytest.mark.parametrize("case", SIGN_ON)
def test_refused_authentication(case: str) -> None:
    status, body, kind, message = SIGN_ON[case]
    error = engine_refusals.sign_on(status, body)
    assert type(error) is kind
    assert error.message == message


def test_a_text_has_no_secret_and_one_line() -> None:
    text = "password=hunter2 " + "x" * 500 + "\nmore"
    error = engine_refusals.error(400, FAULT.format(text).encode(), "create vms")
    assert "hunter2" not in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 200
