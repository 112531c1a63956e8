"""The control socket of a simulated engine: faults, time, and other administrators.

One request per connection: a line of JSON, answered by a line of JSON. `do` is one of

    rules     lines: replaces the rules of `settings.py`
    rule      line: one more
    advance   seconds: moves the clock
    lose-tokens
    password  user, password: changes a password
    role      user, role: replaces the roles of a user
    set       kind, name, and members: status, available (GiB); of hosts, domains, VMs
    request   method, path, body: as another administrator, without authentication
    counts    returns the number of requests by kind
"""

import contextlib
import json
import pathlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ovirtsdk4 import types

from lib.lab import errors
from lib.lab.zvirt import permits, service
from lib.lab.zvirt.calls import ApiCall
from lib.lab.zvirt.engine_core import Refused, name_of
from lib.lab.zvirt.records import EngineRecord

Json = Mapping[str, Any]
_TIMEOUT_S = 30.0
_GIB = 1 << 30
OTHER = "other@internal"
"""The administrator in whose name requests of the control socket are."""


def ask(file: pathlib.Path, **request: object) -> Any:
    """Send a request to the engine of a control socket; return its result.

    Raises:
        LabError: the engine does not run, or has refused.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(file))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answer:
                reply = json.loads(answer.readline())
    except (OSError, ValueError) as error:
        raise errors.LabError(
            f"the simulated engine does not answer: {error}"
        ) from error
    if "error" in reply:
        raise errors.LabError(f"the simulated engine refused: {reply['error']}")
    return reply["result"]


def is_answered(file: pathlib.Path) -> bool:
    """Report whether an engine answers at its control socket."""
    try:
        ask(file, do="counts")
    except errors.LabError:
        return False
    return True


@contextlib.contextmanager
def listening(file: pathlib.Path, served: service.Service) -> Iterator[None]:
    """Answer requests on a socket for as long as the block lasts."""
    file.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))
        listener.listen()
        thread = threading.Thread(target=_accept, args=(listener, served), daemon=True)
        thread.start()
        yield
    file.unlink(missing_ok=True)


def _accept(listener: socket.socket, served: service.Service) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rwb") as stream:
            reply = _answer(served, stream.readline())
            with contextlib.suppress(OSError):
                stream.write(json.dumps(reply).encode() + b"\n")
                stream.flush()


def _answer(served: service.Service, line: bytes) -> Json:
    try:
        request = json.loads(line)
        return {"result": carry_out(served, request)}
    except (KeyError, ValueError, TypeError, Refused) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def carry_out(served: service.Service, request: Json) -> object:
    """Carry out a request of the control socket.

    Raises:
        ValueError, KeyError, TypeError, Refused: it is not possible.
    """
    return _COMMANDS[request["do"]](served, request)


def _rules(served: service.Service, request: Json) -> None:
    served.engine.settings.replace(request["lines"])


def _rule(served: service.Service, request: Json) -> None:
    served.engine.settings.add(request["line"])


def _advance(served: service.Service, request: Json) -> None:
    served.engine.advance(float(request["seconds"]))


def _lose_tokens(served: service.Service, request: Json) -> None:
    del request
    served.sso.lose_tokens()


def _password(served: service.Service, request: Json) -> None:
    served.sso.set_password(request["user"], request["password"])


def _role(served: service.Service, request: Json) -> None:
    engine = served.engine
    with engine.lock:
        account = permits.account_of(engine, request["user"])
        roles = (r for r in engine.records.all("role") if name_of(r) == request["role"])
        role = next(roles, None)
        if account is None or role is None:
            raise KeyError(request["user"] if account is None else request["role"])
        for row in engine.records.all("permission"):
            if row.entity.user and row.entity.user.id == account.key:
                engine.change(row, role=types.Role(id=role.key))
        engine.records.commit()


def _counts(served: service.Service, request: Json) -> Mapping[str, int]:
    del request
    return dict(served.counts)


def _request(served: service.Service, request: Json) -> Json:
    engine = served.engine
    call = ApiCall(
        request["method"],
        request["path"],
        request.get("query", {}),
        {"content-type": "application/xml"},
        request.get("body", "").encode(),
        OTHER,
    )
    with engine.lock:
        engine.run_due()
        try:
            answer = served.answer(call)
        except BaseException:
            engine.records.rollback()
            raise
        engine.records.commit()
    return {"status": answer.status, "body": answer.body.decode()}


def _set(served: service.Service, request: Json) -> None:
    engine = served.engine
    with engine.lock:
        engine.run_due()
        for record in engine.records.all(request["kind"]):
            if name_of(record) == request["name"]:
                _set_record(served, record, request)
                engine.records.commit()
                return
    raise KeyError(request["name"])


def _set_record(served: service.Service, record: EngineRecord, request: Json) -> None:
    engine, status = served.engine, request.get("status")
    engine.records.change(record)
    if status is not None and record.kind == "storage_domain":
        record.extra["status"] = types.StorageDomainStatus(status).value
    elif status is not None:
        engine.change(record, status=_STATUSES[record.kind](status) if status else None)
    if "available" in request:
        engine.change(record, available=int(request["available"] * _GIB))
    if "snapshots" in request:
        record.extra["snapshots"] = int(request["snapshots"])


_STATUSES: Mapping[str, Callable[[str], object]] = {
    "vm": types.VmStatus,
    "host": types.HostStatus,
    "disk": types.DiskStatus,
    "template": types.TemplateStatus,
}
_COMMANDS: Mapping[str, Callable[[service.Service, Json], object]] = {
    "rules": _rules,
    "rule": _rule,
    "advance": _advance,
    "lose-tokens": _lose_tokens,
    "password": _password,
    "role": _role,
    "set": _set,
    "request": _request,
    "counts": _counts,
}
