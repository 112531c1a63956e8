"""Starts and stops the lab's OpenStack.

Rules: every call may be repeated at any moment, and continues where the last one
stopped; a running service is not changed; a file in the data, written last, shows that
it is seeded; what has started stays when a start fails, so that its log can be read.
"""

import contextlib
import dataclasses
import datetime
import functools
import http.client
import shutil
from collections.abc import Iterator, Sequence

import msgspec
import openstack.connection
import psutil

from lib.lab import errors, places
from lib.lab.openstack import (
    accounts,
    cloud,
    config,
    database,
    install,
    keys,
    layout,
    migrate,
    readdress,
    resources,
    seed_cloud,
    seed_identity,
    snapshot,
)
from lib.lab.run import file_lock, ports, processes, progress, room

SERVICES = layout.SERVICES
NODE_SERVICES = layout.NODE_SERVICES
STOP_S = 3.0
ROOM_BYTES = 500 * 10**6
"""What data and logs of one lab take in a long test run, and as much to spare."""


class _Mark(msgspec.Struct, frozen=True):
    """What a seeded database was made with."""

    port_base: int
    install: str


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One program. pid: None when it does not run. rss_bytes: its memory."""

    name: str
    port: int
    pid: int | None
    is_answering: bool
    rss_bytes: int


def build(where: places.Places, shown: progress.Progress) -> None:
    """Fetch everything that is not in the cache yet.

    Raises:
        LabError: see `install.build`.
    """
    install.build(where, shown)


def up(
    where: places.Places,
    shown: progress.Progress,
    services: Sequence[str] = SERVICES,
) -> None:
    """Start some services with their database, from any earlier state.

    Raises:
        LabError: something is missing, a port is taken, or a service did not start.
    """
    unknown = set(services) - set(SERVICES)
    if unknown:
        raise errors.LabError(
            f"there is no service {', '.join(sorted(unknown))}; there are"
            f" {', '.join(SERVICES)}"
        )
    home = layout.Layout(where, install.build(where, shown))
    ordered = [name for name in SERVICES if name in services]
    with _alone(home, shown):
        room.require(home.root, ROOM_BYTES, "OpenStack's data")
        mark = _mark(home) or _seeded(home, shown)
        _check(home, mark)
        _require(home, [layout.DATABASE, *ordered])
        with shown.step("Start OpenStack") as step:
            _database(home, step)
            _start(home, ordered, step)
        accounts.clouds_file(where)


def down(where: places.Places, *, wipe: bool = False) -> None:
    """End every program of this OpenStack; fine when none runs.

    wipe: remove its data and logs too.
    """
    home = layout.of(where)
    processes.stop(where, SERVICES, patience_s=STOP_S)
    database.stop(home)
    if wipe:
        shutil.rmtree(home.root, ignore_errors=True)
        for name in (*SERVICES, layout.DATABASE):
            (where.log / f"{name}.log").unlink(missing_ok=True)


def status(where: places.Places) -> tuple[ServiceStatus, ...]:
    """Report for every program whether it runs and answers."""
    return tuple(_status(where, name) for name in (layout.DATABASE, *SERVICES))


def _status(where: places.Places, name: str) -> ServiceStatus:
    process = processes.find(where, name)
    port = layout.ports(where)[name]
    if process is None:
        return ServiceStatus(name, port, None, is_answering=False, rss_bytes=0)
    memory = 0
    with contextlib.suppress(psutil.Error):
        memory = process.memory_info().rss
    # A port that is taken by a living program of ours is one that it listens on.
    answers = not ports.free(port) if name == layout.DATABASE else _answers(port)
    return ServiceStatus(
        name, port, process.pid, is_answering=answers, rss_bytes=memory
    )


def _alone(
    home: layout.Layout, shown: progress.Progress
) -> contextlib.AbstractContextManager[None]:
    """Wait until no other process starts this lab's OpenStack."""
    title = "Wait for another start of OpenStack"
    return file_lock.held(home.root / "lock", shown, title)


def _mark(home: layout.Layout, name: str = snapshot.SEEDED) -> _Mark | None:
    try:
        return msgspec.json.decode((home.data / name).read_bytes(), type=_Mark)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _check(home: layout.Layout, mark: _Mark) -> None:
    """See that the data fits this program and these ports.

    Raises:
        LabError: it does not.
    """
    if mark.port_base != home.where.port_base:
        raise errors.LabError(
            f"this lab's OpenStack was made for ports from {mark.port_base}, not from"
            f" {home.where.port_base}; `mooring lab down --wipe` removes it"
        )
    if mark.install != home.install.key:
        raise errors.LabError(
            "this lab's OpenStack was made by another version of the lab;"
            " `mooring lab down --wipe` removes it"
        )


def _require(home: layout.Layout, programs: Sequence[str]) -> None:
    ports.require(home.where, [(name, layout.PORTS[name]) for name in programs])


def _seeded(home: layout.Layout, shown: progress.Progress) -> _Mark:
    """Make seeded data: from the kept snapshot, else by the first start of all labs."""
    while True:
        with snapshot.alone(home, shown):
            if snapshot.find(home) is None:
                _require(home, [layout.DATABASE, *SERVICES])
                return _first_start(home, shown)
        try:
            return _restored(home, shown)
        except snapshot.DamagedError as error:
            with shown.step(f"Start OpenStack from scratch: {error}"):
                pass


def _restored(home: layout.Layout, shown: progress.Progress) -> _Mark:
    """Begin with the snapshot instead of an unfinished or missing database."""
    with shown.step("Unpack a seeded OpenStack") as step:
        processes.stop(home.where, SERVICES, patience_s=STOP_S)
        database.stop(home)
        _require(home, [layout.DATABASE])
        snapshot.restore(home)
        created = _mark(home, snapshot.RESTORED)
        if created is None:
            raise errors.LabError(f"{home.data} is not what was unpacked there")
        _database(home, step)
        old = layout.ports(dataclasses.replace(home.where, port_base=created.port_base))
        images = home.data / "glance" / "images"
        database.run(home, readdress.statements(old, layout.ports(home.where), images))
        return _keep_mark(home, created.install)


def _keep_mark(home: layout.Layout, install_key: str) -> _Mark:
    mark = _Mark(home.where.port_base, install_key)
    (home.data / snapshot.SEEDED).write_bytes(msgspec.json.encode(mark))
    (home.data / snapshot.RESTORED).unlink(missing_ok=True)
    return mark


def _first_start(home: layout.Layout, shown: progress.Progress) -> _Mark:
    """Make and seed every database, and keep a snapshot; all but octavia run then."""
    with shown.step("Make OpenStack's databases") as step:
        _database(home, step)
        _write_files(home)
        step.note("tables")
        migrate.run(home, step)
    others = [name for name in SERVICES if name != layout.OCTAVIA]
    with shown.step("Start OpenStack for the first time") as step:
        _start(home, [layout.KEYSTONE], step)
        step.note("users and catalogue")
        with _admin(home) as admin:
            seed_identity.run(home, admin)
        _start(home, others, step)
        step.note("flavors, images, networks")
        with _admin(home) as admin:  # who knows the catalogue that is there now
            seed_cloud.run(admin)
    with shown.step("Keep a snapshot of the seeded OpenStack"):
        # The services find the database again by themselves.
        database.stop(home)
        mark = _keep_mark(home, home.install.key)
        snapshot.take(home)
    return mark


@contextlib.contextmanager
def _admin(home: layout.Layout) -> Iterator[openstack.connection.Connection]:
    with (
        cloud.sentences(),
        contextlib.closing(cloud.connect(home.where, accounts.ADMIN)) as admin,
    ):
        yield admin


def _database(home: layout.Layout, step: progress.ProgressStep) -> None:
    step.note("database")
    database.start(home)


def _write_files(home: layout.Layout) -> None:
    """Write configuration, keys and the guest's files; ours may be gone tomorrow."""
    resources.unpack_guest(home.guest)
    home.etc.mkdir(parents=True, exist_ok=True)
    home.keys.mkdir(parents=True, exist_ok=True)
    facts = config.Facts(
        ports=layout.ports(home.where),
        data=home.data,
        share=home.install.venv / "etc",
    )
    (home.data / "policy.yaml").write_text("")
    for name, text in config.render(facts).items():
        (home.etc / name).write_text(text)
    keys.make(home.keys, datetime.datetime.now(datetime.UTC))


def _start(
    home: layout.Layout, services: Sequence[str], step: progress.ProgressStep
) -> None:
    """Start services in parallel, then wait for each."""
    _write_files(home)
    for name in services:
        port = home.port(name)
        processes.start(
            home.where,
            name,
            [
                *(home.install.python, "-W", "ignore", home.guest / "service.py"),
                *(name, "--etc", home.etc, "--port", str(port)),
                *(_of_nova(home) if name == layout.NOVA else ()),
            ],
        )
    for done, name in enumerate(services):
        step.note(f"waiting for {name}")
        step.advance(done, len(services))
        answers = functools.partial(_answers, home.port(name))
        processes.wait_for(home.where, name, answers)


def _of_nova(home: layout.Layout) -> Sequence[str]:
    """Return its hosts, and the services without which it does not start."""
    after = (layout.KEYSTONE, layout.PLACEMENT)
    return [
        *(word for host in layout.COMPUTE_HOSTS for word in ("--compute-host", host)),
        *(word for name in after for word in ("--after", str(home.port(name)))),
    ]


def _answers(port: int) -> bool:
    """Report whether an API answers anything at all."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
