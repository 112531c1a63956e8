"""What can befall the lab's cloud. Each fault is undone when its block ends."""

import contextlib
import json
import signal
from collections.abc import Collection, Iterator

from lib.lab import errors, places
from lib.lab.openstack import database, layout
from lib.lab.run import processes
from tests.harness.faults import fault_proxy

_JSON = {"Content-Type": "application/json"}


@contextlib.contextmanager
def frozen(where: places.Places, service: str) -> Iterator[None]:
    """Stop a service in its tracks: it keeps its connections and answers nothing.

    Raises:
        LabError: it does not run.
    """
    parent = processes.find(where, service)
    if parent is None:
        raise errors.LabError(f"{service} does not run")
    tree = (parent, *parent.children(recursive=True))
    for process in tree:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in tree:
            process.send_signal(signal.SIGCONT)


def expire_password(where: places.Places, user: str) -> None:
    """Expire a user's password; a new one is valid again.

    user: a name of letters, digits and hyphens. Tokens of before stay valid.

    Source: keystone.identity.backends.sql_model, Password.
    """
    database.run(
        layout.of(where),
        "UPDATE keystone.password JOIN keystone.local_user"  # noqa: S608 # see `user`
        " ON password.local_user_id = local_user.id"
        " SET password.expires_at = '2020-01-01',"
        " password.expires_at_int = 1577836800000000"
        f" WHERE local_user.name = '{user}'",
    )


def throttled(pause_s: int) -> fault_proxy.Fault:
    """Have a service ask for a pause instead of answering."""
    headers = {"Retry-After": str(pause_s)}
    return lambda _: fault_proxy.Answer(429, headers, b"{}")


def emptied(request: fault_proxy.Request) -> fault_proxy.Answer | None:
    """Return empty lists of servers and ports; single reads are correct."""
    kind = request.path.partition("?")[0].strip("/").split("/")[1:]
    if kind not in (["servers", "detail"], ["ports"]):
        return None
    return fault_proxy.Answer(200, _JSON, json.dumps({kind[0]: []}).encode())


def refused(tokens: Collection[str]) -> fault_proxy.Fault:
    """Have a service reject these tokens, as if each had expired."""
    no = fault_proxy.Answer(401, _JSON, b"{}")
    return lambda request: no if request.headers.get("x-auth-token") in tokens else None
