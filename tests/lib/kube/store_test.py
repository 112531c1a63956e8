import contextlib
import itertools
import json
import re
import sys
import threading
import time
import types
import typing
from collections.abc import Callable, Iterator, Mapping

import pytest
import structlog.testing

from lib.kube import client, errors, listing, objects, resources, store
from lib.kube.fake import api, calls
from lib.process import repeats

if typing.TYPE_CHECKING:
    from tests.lib import conftest as shared
    from tests.lib.kube import conftest

Announced = list[tuple[str, str | None, str | None]]
Nodes = store.Store["conftest.Thing"]
MakeStore = Callable[..., tuple[Nodes, Announced]]


def node(name: str, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": spec}


def version(document: dict[str, object]) -> str:
    metadata = typing.cast(dict[str, str], document["metadata"])
    return metadata["resourceVersion"]


@pytest.fixture()
def make(thing: type["conftest.Thing"]) -> MakeStore:
    """Return a function that makes a store and the list of what it announces."""

    def build(kube_api: client.Api, **more: object) -> tuple[Nodes, Announced]:
        more = {"rng": lambda: 0.0, **more}
        nodes = store.Store(kube_api, resources.NODES, thing, **more)  # type: ignore[arg-type] # named by each test
        announced: Announced = []

        def announce(
            key: str, old: "conftest.Thing | None", new: "conftest.Thing | None"
        ) -> None:
            versions = [o.metadata.resource_version if o else None for o in (old, new)]
            announced.append((key, versions[0], versions[1]))

        nodes.subscribe(announce)
        return nodes, announced

    return build


def test_a_list_fills_the_store_page_by_page(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """All pages are read, and every object is announced as new."""
    for n in range(5):
        fake.put(resources.NODES, node(f"n{n}"))
    nodes, announced = make(fake, page_size=2)
    nodes.relist()
    assert sorted(nodes.items()) == ["n0", "n1", "n2", "n3", "n4"]
    assert [(key, old) for key, old, _ in announced] == [
        (f"n{n}", None) for n in range(5)
    ]
    assert len(fake.calls) == 3
    assert nodes.synced.is_set()


def test_a_token_that_expires_between_pages_costs_one_full_list(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """The list is complete all the same."""
    for n in range(5):
        fake.put(resources.NODES, node(f"n{n}"))
    fault = calls.Fault(errors.Gone("expired", operation="list", status=410))

    def expire(call: calls.Call) -> None:
        if len(fake.calls) == 2:
            fake.faults.append(fault)
            raise fake.faults.pop().error

    fake.before_call = expire
    nodes, _ = make(fake, page_size=2)
    nodes.relist()
    assert len(nodes.items()) == 5


def test_a_relist_announces_only_differences(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """Changed, gone and new are announced as such; the same is not announced again."""
    first = {name: fake.put(resources.NODES, node(name)) for name in ("a", "b", "c")}
    nodes, announced = make(fake)
    nodes.relist()
    announced.clear()
    changed = fake.put(resources.NODES, node("b", x=1))
    fake.remove(resources.NODES, "c")
    new = fake.put(resources.NODES, node("d"))
    nodes.relist()
    assert sorted(announced, key=lambda entry: entry[0]) == [
        ("b", version(first["b"]), version(changed)),
        ("c", version(first["c"]), None),
        ("d", None, version(new)),
    ]


def test_an_object_made_again_is_announced_as_both(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """Another uid under the same name is another object."""
    old = fake.put(resources.NODES, node("a"))
    nodes, announced = make(fake)
    nodes.relist()
    announced.clear()
    fake.remove(resources.NODES, "a")
    new = fake.put(resources.NODES, node("a"))
    nodes.relist()
    assert announced == [("a", version(old), None), ("a", None, version(new))]


def test_a_failed_list_leaves_the_store_as_it_was(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """An error never empties the store."""
    fake.put(resources.NODES, node("a"))
    nodes, announced = make(fake)
    nodes.relist()
    announced.clear()
    fake.faults.append(calls.Fault(errors.Unavailable("no", operation="list")))
    with pytest.raises(errors.Unavailable):
        nodes.relist()
    assert list(nodes.items()) == ["a"]
    assert announced == []


def test_a_late_subscriber_hears_all_once(fake: api.FakeApi, make: MakeStore) -> None:
    """A late subscriber receives all objects of the store."""
    fake.put(resources.NODES, node("a"))
    nodes, _ = make(fake)
    nodes.relist()
    heard: list[str] = []
    nodes.subscribe(lambda key, old, new: heard.append(key))
    assert heard == ["a"]


def test_a_subscriber_that_breaks_stops_nobody(
    fake: api.FakeApi, make: MakeStore, log: list[dict[str, object]]
) -> None:
    """Its bug is logged; others are called, and the store goes on."""

    def break_down(key: str, old: object, new: object) -> None:
        raise ZeroDivisionError

    nodes, _ = make(fake)
    heard: list[str] = []
    nodes.subscribe(break_down)
    nodes.subscribe(lambda key, old, new: heard.append(key))
    fake.put(resources.NODES, node("a"))
    nodes.relist()
    assert heard == ["a"]
    assert log[-1]["event"] == "unexpected error in subscriber"


def test_a_snapshot_never_changes(fake: api.FakeApi, make: MakeStore) -> None:
    """What items() gave is immutable, and shared until something changes."""
    fake.put(resources.NODES, node("a"))
    nodes, _ = make(fake)
    nodes.relist()
    before = nodes.items()
    assert isinstance(before, types.MappingProxyType)
    assert nodes.items() is before
    fake.put(resources.NODES, node("b"))
    nodes.relist()
    assert list(before) == ["a"]


def test_selectors_and_namespace_are_passed_on(
    fake: api.FakeApi, thing: type["conftest.Thing"]
) -> None:
    """A store of a part holds only that part, by "namespace/name"."""
    for namespace, name, labels in (
        ("x", "a", {"ours": "yes"}),
        ("x", "b", {}),
        ("y", "a", {"ours": "yes"}),
    ):
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        fake.put(resources.SECRETS, {"metadata": metadata})
    secrets = store.Store(
        fake, resources.SECRETS, thing, namespace="x", label_selector="ours=yes"
    )
    secrets.relist()
    assert list(secrets.items()) == ["x/a"]


# Freshness


def test_our_own_write_makes_an_object_stale_until_seen(
    fake: api.FakeApi,
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """is_current is False from our write on until the watch has brought it."""
    fake.put(resources.NODES, node("a"))
    nodes, _ = make(fake)
    nodes.relist()
    assert nodes.is_current("a")
    nodes.note_write("a", version(fake.put(resources.NODES, node("a", x=1))))
    assert not nodes.is_current("a")
    assert nodes.is_current("b"), "others are not concerned"
    running(nodes.run)
    eventually(lambda: nodes.is_current("a"))
    observed = nodes.get("a")
    assert observed is not None
    assert observed.spec == {"x": 1}


def test_a_write_seen_before_it_was_noted_is_current(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """The watch may be faster than the answer, and others may have written since."""
    own_version = version(fake.put(resources.NODES, node("a", x=1)))
    fake.put(resources.NODES, node("a", x=2))
    nodes, _ = make(fake)
    nodes.relist()
    nodes.note_write("a", own_version)
    assert nodes.is_current("a")


def test_a_list_that_began_after_our_write_shows_it(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """Even with versions that can't be compared, a new list settles all."""
    fake.put(resources.NODES, node("a"))
    nodes, _ = make(fake)
    nodes.relist()
    nodes.note_write("a", "opaque-7")
    assert not nodes.is_current("a")
    nodes.relist()
    assert nodes.is_current("a")


def test_our_own_deletion_is_current_once_seen(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """Gone, being deleted, or made again all show that the deletion was seen."""
    held: dict[str, object] = {"metadata": {"name": "b", "finalizers": ["x/y"]}}
    for document in (node("a"), held, node("c")):
        fake.put(resources.NODES, document)
    nodes, _ = make(fake)
    nodes.relist()
    for name in "abc":
        fake.remove(resources.NODES, name)
        nodes.note_write(name, None)
        assert not nodes.is_current(name)
    fake.put(resources.NODES, node("c"))
    nodes.relist()
    assert [nodes.is_current(name) for name in "abc"] == [True] * 3


# The watch


@pytest.fixture()
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pause after a failed watch."""
    monkeypatch.setattr(store, "FIRST_BACKOFF_S", 0.02)


Watched = Callable[..., tuple[Nodes, Announced]]


@pytest.fixture()
def watched(
    server: "conftest.StandIn",
    connect: Callable[..., client.KubeClient],
    make: MakeStore,
    running: "shared.Running",
    soon: None,
) -> Watched:
    """Return a function that makes a store of the server's Nodes and has it watch."""

    def begin(**more: object) -> tuple[Nodes, Announced]:
        nodes, announced = make(connect(server.url), **more)
        running(nodes.run)
        assert nodes.synced.wait(10)
        return nodes, announced

    return begin


def test_a_watch_keeps_the_store_up_to_date(
    server: "conftest.StandIn", watched: Watched, eventually: "shared.Eventually"
) -> None:
    """Additions, changes and deletions arrive, each announced once, in order."""
    nodes, announced = watched()
    a = fake_version(server, "a")
    b = version(server.fake.put(resources.NODES, node("a", x=1)))
    server.fake.remove(resources.NODES, "a")
    eventually(lambda: len(announced) == 3)
    assert announced == [("a", None, a), ("a", a, b), ("a", b, None)]
    assert not nodes.items()


def fake_version(server: "conftest.StandIn", name: str, **spec: object) -> str:
    return version(server.fake.put(resources.NODES, node(name, **spec)))


def test_a_silent_connection_is_noticed(
    server: "conftest.StandIn", watched: Watched, eventually: "shared.Eventually"
) -> None:
    """A server that stops sending is left after the read time-out; nothing is lost."""
    server.fake.put(resources.NODES, node("a"))
    nodes, announced = watched(read_timeout_s=0.3)
    server.is_silent = True
    server.fake.put(resources.NODES, node("b"))
    eventually(lambda: watches(server) >= 2)
    server.is_silent = False
    eventually(lambda: nodes.get("b") is not None)
    assert [key for key, *_ in announced] == ["a", "b"]
    assert lists(server) == 1, "it resumes, and does not list again"


def watches(server: "conftest.StandIn") -> int:
    return sum("watch=1" in request.path for request in server.requests)


def lists(server: "conftest.StandIn") -> int:
    return sum("limit=" in request.path for request in server.requests)


def test_a_dropped_connection_is_resumed(
    server: "conftest.StandIn", watched: Watched, eventually: "shared.Eventually"
) -> None:
    """What happened in between arrives, and only that."""
    nodes, announced = watched()
    server.fake.put(resources.NODES, node("a"))
    eventually(lambda: nodes.get("a") is not None)
    server.fake.break_watches()
    server.fake.put(resources.NODES, node("b"))
    eventually(lambda: nodes.get("b") is not None)
    assert [key for key, *_ in announced] == ["a", "b"]
    assert lists(server) == 1


def test_an_object_that_changes_is_never_away(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """A reader during a change must find the object, old or new."""
    fake.put(resources.NODES, node("n1"))
    nodes, _ = make(fake)
    nodes.relist()
    value = nodes.get("n1")
    assert value is not None
    done = threading.Event()

    def change() -> None:
        for _ in range(5000):
            nodes._put(value, is_deleted=False)  # what `run` does, at full speed
        done.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    missed = 0
    try:
        changer = threading.Thread(target=change)
        changer.start()
        while not done.is_set():
            missed += nodes.get("n1") is None
        changer.join()
    finally:
        sys.setswitchinterval(before)
    assert missed == 0


@pytest.mark.usefixtures("soon")
def test_an_expired_version_is_listed_again_without_a_gap(
    server: "conftest.StandIn",
    connect: Callable[..., client.KubeClient],
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """After 410 the store is never empty, and announces only what differs."""
    for name in ("a", "b"):
        server.fake.put(resources.NODES, node(name))
    nodes, announced = make(connect(server.url))
    sizes: list[int] = []
    nodes.subscribe(lambda key, old, new: sizes.append(len(nodes.items())))
    running(nodes.run)
    assert nodes.synced.wait(10)
    eventually(lambda: watches(server) == 1)
    announced.clear()
    sizes.clear()
    server.script.append(lambda handler: handler.refuse(410, "too old"))
    server.fake.break_watches()
    eventually(lambda: not server.script)
    server.fake.remove(resources.NODES, "b")
    server.fake.put(resources.NODES, node("c"))
    server.fake.compact()
    eventually(lambda: nodes.get("c") is not None and nodes.get("b") is None)
    assert {(key, old is None) for key, old, _ in announced} == {
        ("b", False),
        ("c", True),
    }
    assert len(announced) == 2
    assert min(sizes) >= 1
    assert lists(server) >= 2


@pytest.mark.usefixtures("soon")
def test_a_watch_refused_with_410_is_not_tried_again(
    fake: api.FakeApi,
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """A forgotten version will not come back: the next call is a list."""
    nodes, _ = make(fake)
    gone = errors.Gone("too old", operation="watch", status=410)
    fake.faults.append(calls.Fault(gone, verb="watch"))
    running(nodes.run)
    eventually(lambda: len(fake.calls) == 4)
    assert [call.verb for call in fake.calls] == ["list", "watch", "list", "watch"]


def test_an_error_line_of_410_is_listed_again(
    fake: api.FakeApi,
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """410 inside an open watch means the same as 410 at its start."""
    fake.put(resources.NODES, node("a"))
    nodes, announced = make(fake)
    running(nodes.run)
    assert nodes.synced.wait(10)
    eventually(lambda: any(call.verb == "watch" for call in fake.calls))
    fake.compact()
    fake.put(resources.NODES, node("b"))
    eventually(lambda: nodes.get("b") is not None)
    assert [key for key, *_ in announced] == ["a", "b"]


def test_bookmarks_advance_the_version(
    server: "conftest.StandIn", watched: Watched, eventually: "shared.Eventually"
) -> None:
    """A watch resumes from the last bookmark, so that history may be forgotten."""
    nodes, _ = watched()
    eventually(lambda: watches(server) == 1)
    noted = version(server.fake.put(resources.LEASES, lease()))
    nodes.note_write("a", noted)  # of another kind: no event of ours will show it
    assert not nodes.is_current("a")

    def has_come() -> bool:
        server.fake.bookmark()
        return nodes.is_current("a")

    eventually(has_come)
    server.fake.compact()
    server.fake.break_watches()
    eventually(lambda: watches(server) == 2)
    assert f"resourceVersion={noted}" in server.requests[-1].path
    server.fake.put(resources.NODES, node("a"))
    eventually(lambda: nodes.get("a") is not None)
    assert lists(server) == 1


def lease() -> dict[str, object]:
    return {"metadata": {"name": "l", "namespace": "x"}}


@pytest.mark.usefixtures("soon")
def test_a_version_that_keeps_failing_is_given_up(
    fake: api.FakeApi,
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """After a restore the server may know none as high: then a list helps."""
    nodes, _ = make(fake)
    refusal = errors.Unavailable("too large", operation="watch", status=504)
    fake.faults += [calls.Fault(refusal, verb="watch")] * store.RELIST_AFTER
    running(nodes.run)
    eventually(lambda: sum(call.verb == "list" for call in fake.calls) == 2)


class CutApi(api.FakeApi):
    """API server behind a proxy that closes each watch after `open_s` of its clock."""

    def __init__(self, open_s: float) -> None:
        super().__init__()
        self.open_s = open_s
        self.at = 0.0
        self.cuts = 0
        self.opened_at: list[float] = []

    def clock(self) -> float:
        return self.at

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Iterator[client.WatchLines]:
        opened = super().stream(
            path,
            query,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )
        with opened as lines:
            self.opened_at.append(time.monotonic())
            self.break_watches()
            try:
                yield lines
            finally:
                self.at += self.open_s
                self.cuts += 1


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("open_s", "is_resumed"),
    [
        pytest.param(50.0, True, id="idle timeout of a proxy"),
        pytest.param(2.0, True, id="an impatient proxy"),
        pytest.param(0.5, False, id="closed immediately"),
        pytest.param(90.0, False, id="silence up to the read timeout"),
    ],
)
def test_a_proxy_that_closes_idle_watches_costs_neither_pause_nor_list(
    open_s: float,
    is_resumed: bool,
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """Before its first bookmark a watch of a quiet kind is resumed immediately."""
    server = CutApi(open_s)
    nodes, _ = make(server, clock=server.clock)
    running(nodes.run)
    if is_resumed:
        eventually(lambda: server.cuts >= 10)
        assert sum(call.verb == "list" for call in server.calls) == 1
    else:
        eventually(lambda: len(server.opened_at) >= 4)
        verbs = [call.verb for call in server.calls][:6]
        assert verbs == ["list", "watch", "watch", "watch", "list", "watch"]
        pauses = itertools.pairwise(server.opened_at[:4])
        backoffs = [nodes._backoff_s(failures) for failures in (1, 2, 3)]
        assert [end - begin for begin, end in pauses] >= backoffs, "it backs off"


@pytest.mark.usefixtures("soon")
def test_an_unreadable_line_does_not_end_the_loop(
    server: "conftest.StandIn",
    connect: Callable[..., client.KubeClient],
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
    log: list[dict[str, object]],
) -> None:
    """A bug is logged once with its traceback, and the store lists again."""

    def nonsense(handler: "conftest.Handler") -> None:
        handler.begin_chunks()
        handler.chunk(b'{"type":"ADDED"}\n')
        handler.chunk(b"")

    nodes, _ = make(connect(server.url))
    server.script.append(lambda handler: handler.from_fake())
    server.script.append(nonsense)
    running(nodes.run)
    eventually(lambda: lists(server) == 2)
    assert [entry["event"] for entry in log] == ["unexpected error in watch"]


@pytest.mark.usefixtures("soon")
def test_a_malformed_object_of_a_watch_is_named(
    server: "conftest.StandIn",
    connect: Callable[..., client.KubeClient],
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
    log: list[dict[str, object]],
) -> None:
    """Name and field are logged, no value; the store lists again."""

    def malformed(handler: "conftest.Handler") -> None:
        handler.begin_chunks()
        document = {"metadata": {"name": "a", "labels": {"x": 1}}, "spec": "hidden"}
        event = {"type": "ADDED", "object": document}
        handler.chunk(json.dumps(event).encode() + b"\n")
        handler.chunk(b"")

    nodes, _ = make(connect(server.url))
    server.script.append(lambda handler: handler.from_fake())
    server.script.append(malformed)
    running(nodes.run)
    eventually(lambda: lists(server) == 2)
    (entry,) = log
    print(entry)
    assert entry["event"] == "watch failed"
    assert "malformed" in str(entry["error"])
    assert "hidden" not in str(entry)


def test_a_malformed_object_of_a_list_is_named(
    server: "conftest.StandIn", connect: Callable[..., client.KubeClient]
) -> None:
    good = {"metadata": {"name": "a", "namespace": "n"}}
    bad = {"metadata": {"name": "b", "namespace": "n"}, "data": "hidden"}
    body = json.dumps({"metadata": {}, "items": [good, bad]}).encode()
    server.script.append(lambda handler: handler.send(200, body))
    with pytest.raises(errors.KubeError, match="n/b: malformed: Expected") as caught:
        listing.read(
            connect(server.url), resources.CONFIG_MAPS, objects.ConfigMap, timeout_s=5
        )
    assert "$.data" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_store_stops_at_once(
    server: "conftest.StandIn",
    connect: Callable[..., client.KubeClient],
    make: MakeStore,
    eventually: "shared.Eventually",
) -> None:
    """After the stop it does not wait for a server that is silent."""
    nodes, _ = make(connect(server.url))
    stop = threading.Event()
    thread = threading.Thread(target=nodes.run, args=(stop,))
    thread.start()
    eventually(lambda: watches(server) == 1)
    stop.set()
    thread.join(3)
    assert not thread.is_alive()


def test_failures_are_waited_out_longer_and_longer(
    fake: api.FakeApi, make: MakeStore
) -> None:
    """The pause grows to its limit, with jitter, and is none after success."""
    nodes, _ = make(fake)
    pauses = [nodes._backoff_s(failures) for failures in range(12)]
    assert pauses[:4] == [0.0, 0.25, 0.5, 1.0]
    assert pauses[-1] == store.LONGEST_BACKOFF_S / 2


@pytest.mark.usefixtures("soon")
def test_a_recovery_is_reported_once(
    fake: api.FakeApi,
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """After the first list nothing; after a failed watch once it is open again."""
    opened: list[Nodes] = []
    failures: list[errors.KubeError | None] = []
    nodes, _ = make(fake, on_recovery=lambda: failures.append(opened[0].failure))
    opened.append(nodes)
    running(nodes.run)
    eventually(lambda: nodes.synced.is_set() and len(fake.calls) == 2)
    refusal = errors.Unavailable("connection refused", operation="GET /x")
    fake.faults += [calls.Fault(refusal, "watch")] * 2
    fake.break_watches()
    eventually(lambda: bool(failures))
    assert failures == [None]


class Clock:
    """Monotonic seconds that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.usefixtures("soon")
def test_three_watches_of_a_server_that_is_down_log_once_a_minute(
    connect: Callable[..., client.KubeClient],
    make: MakeStore,
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """Server, cause and next try; then one line a minute for all of them, counted."""
    clock = Clock()
    failures = repeats.Repeats(clock=clock)
    tries: list[None] = []

    def rng() -> float:
        tries.append(None)
        return 0.0

    with structlog.testing.capture_logs() as entries:
        for _ in range(3):
            nodes, _ = make(connect("http://127.0.0.1:1"), failures=failures, rng=rng)
            running(nodes.run)
        eventually(lambda: len(entries) >= 1)
        eventually(lambda: len(tries) >= 9)  # one try of each cannot be so many
        assert len(entries) == 1
        clock.now += 60
        eventually(lambda: len(entries) == 2)
    for entry in entries:
        assert entry["event"] == "watch failed"
        assert re.fullmatch(
            r"http://127\.0\.0\.1:1: connection refused; retry in \d+\.\ds",
            entry["error"],
        )
    assert entries[0]["count"] == 1
    assert entries[1]["count"] >= 4
