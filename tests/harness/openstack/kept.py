"""The OpenStack of a test slot, which stays up from one test process to the next.

Rules: it is used again only if it was made from the same packages, seed and code, every
program answers, and no test has damaged it; otherwise it is made again from the
snapshot, and one sentence says why.
"""

import pathlib

from lib.lab import errors, places
from lib.lab.openstack import accounts, cloud, lab, layout, resources
from lib.lab.run import progress
from lib.lab.slots import leases

_CODE = ("config.py", "lab.py", "layout.py", "readdress.py", "snapshot.py")
"""Decides how a lab is started, beside its packages and its seed."""


def ensure(where: places.Places, shown: progress.Progress) -> None:
    """Have all services run with the data of a fresh seed, or of earlier tests.

    Raises:
        LabError: see `lab.up`.
    """
    home = layout.of(where)
    if home.root.exists():
        reason = _unfit(where)
        if not reason:
            with shown.step("Use the OpenStack that is up"):
                return
        with shown.step(f"Reset OpenStack: {reason}"):
            lab.down(where, wipe=True)
    lab.up(where, shown)
    _digest_file(where).write_text(_digest(where))


def _digest_file(where: places.Places) -> pathlib.Path:
    return layout.of(where).root / "digest"


def _digest(where: places.Places) -> str:
    code = (resources.read(name) for name in _CODE)
    return resources.digest(
        layout.of(where).install.key, resources.seed_digest(), *code
    )


def _unfit(where: places.Places) -> str:
    """Return why the lab cannot be used as it is; empty when it can."""
    file = _digest_file(where)
    if not file.exists():
        return "its start was interrupted"
    if file.read_text() != _digest(where):
        return "it was made by another version of the lab"
    if reason := leases.damage(where.state):
        return f"it is damaged: {reason}"
    for row in lab.status(where):
        if row.pid is None:
            return f"{row.name} has ended"
        if not row.is_answering:
            return f"{row.name} does not answer"
    return _refusal(where)


def _refusal(where: places.Places) -> str:
    """Return why Keystone issues no token; empty if it does."""
    connection = cloud.connect(where, accounts.ADMIN)
    try:
        with cloud.sentences():
            connection.authorize()
    except errors.LabError as error:
        return str(error)
    finally:
        connection.close()
    return ""
