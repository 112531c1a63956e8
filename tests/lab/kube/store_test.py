"""The watched store against a real kube-apiserver that fails in every way we know."""

import collections
import contextlib
import dataclasses
import json
import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping

import pytest

from lib.kube import client, errors, kube_config, objects, resources, store
from lib.lab import places
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes, progress, waiting
from tests.harness.faults import tcp_proxy

NODES = 40
PAGE = 7
SILENCE_S = 6.0
"""The store's patience with a silent watch; bookmarks come more often, see Watched."""
WATCH_S = 5
RELISTS = 60
CHANGES = 600
GROWTH_BYTES_MAX = 512 * 1024
FAULTS = (
    "paged list",
    "bookmark",
    "dropped connection",
    "silent connection",
    "frozen server",
    "server restart",
    "expired version",
    "relists",
    "many changes",
)
TIMEOUT_S = 10.0


class Tapped:
    """Lines of a watch, with their types noted."""

    def __init__(self, lines: client.WatchLines, note: Callable[[str], None]) -> None:
        self._lines = lines
        self._note = note

    def __iter__(self) -> "Tapped":
        return self

    def __next__(self) -> bytes:
        line = next(self._lines)
        self._note(json.loads(line)["type"])
        return line

    def abort(self) -> None:
        self._lines.abort()


@dataclasses.dataclass
class Watched(client.Api):
    """The real client; counts, and asks for short watches: bookmarks come before
    their end.

    counts: lists, pages, watches and types of their lines by number; "410"; "failure":
    a request or a watch that failed, or a watch that ended soon and without a line;
    "stall": a failure after SILENCE_S.
    """

    api: client.Api
    counts: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    resumed_from: list[int] = dataclasses.field(default_factory=list)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        with self._noting_failure():
            answer = self.api.request(
                method,
                path,
                query=query,
                body=body,
                content_type=content_type,
                timeout_s=min(timeout_s, SILENCE_S),
            )
        self.counts["page" if "continue" in (query or {}) else "list"] += 1
        return answer

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Iterator[client.WatchLines]:
        self.counts["watch"] += 1
        self.resumed_from.append(int(query["resourceVersion"]))
        heard: list[str] = []

        def note(kind: str) -> None:
            heard.append(kind)
            self.counts[kind] += 1

        began = time.monotonic()
        with (
            self._noting_failure(),
            self.api.stream(
                path,
                {**query, "timeoutSeconds": str(WATCH_S)},
                connect_timeout_s=min(connect_timeout_s, SILENCE_S),
                read_timeout_s=read_timeout_s,
            ) as lines,
        ):
            yield Tapped(lines, note)
        if not heard and time.monotonic() - began < store.SHORT_WATCH_S:
            self.counts["failure"] += 1

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except errors.KubeError as error:
            self.counts["failure"] += 1
            self.counts["410"] += isinstance(error, errors.Gone)
            self.counts["stall"] += time.monotonic() - began > SILENCE_S - 1
            raise

    def lists_since(self, before: Mapping[str, int]) -> tuple[int, int]:
        """Return how many lists there were, and how many at most had a reason.

        A 410 is a reason, and so is each third failure in a row: a busy machine may
        stall for longer than the store's patience.
        """
        since = {
            name: self.counts[name] - before.get(name, 0)
            for name in ("list", "410", "failure")
        }
        return since["list"], since["410"] + since["failure"] // store.RELIST_AFTER


class Book:
    """What a subscriber was told: every uid comes once and goes once."""

    def __init__(self) -> None:
        self.came: collections.Counter[str] = collections.Counter()
        self.went: collections.Counter[str] = collections.Counter()

    def told(
        self, key: str, old: objects.Bare | None, new: objects.Bare | None
    ) -> None:
        del key
        if old is None and new is not None:
            self.came[new.metadata.uid] += 1
        if new is None and old is not None:
            self.went[old.metadata.uid] += 1

    def check(self, existing: Mapping[str, objects.Bare]) -> None:
        assert set(self.came.values()) <= {1}, "announced twice as new"
        assert set(self.went.values()) <= {1}, "announced twice as gone"
        left = self.came.keys() - self.went.keys()
        assert left == {node.metadata.uid for node in existing.values()}, "missed"


class Harbour:
    """One control plane, a store that looks at it through a pipe, and its book."""

    def __init__(self, where: places.Places) -> None:
        self.where = where
        self.kubeconfig = str(control_plane.admin_kubeconfig(where))
        self.direct = cluster.connect(control_plane.admin_kubeconfig(where))
        self.pipe = tcp_proxy.TcpProxy(where.port("apiserver"))
        self.watched = Watched(self._through())
        self.book = Book()
        self.store = store.Store(
            self.watched,
            resources.NODES,
            objects.Bare,
            page_size=PAGE,
            read_timeout_s=SILENCE_S,
        )
        self.store.subscribe(self.book.told)
        self._made = 0

    def _through(self) -> client.KubeClient:
        master = f"https://127.0.0.1:{self.pipe.port}"
        read = kube_config.load(self.kubeconfig, master, env=os.environ)
        return client.KubeClient(read, user_agent="store-test")

    def create(self) -> str:
        self._made += 1
        name = f"boat-{self._made}"
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        self.direct.create(
            resources.NODES, json.dumps(body).encode(), timeout_s=TIMEOUT_S
        )
        return name

    def change(self) -> None:
        """Make one Node, delete one, replace one under its name, label one."""
        self.create()
        first, second, third, *_ = sorted(self.truth())
        cluster.delete_node(self.direct, first)
        cluster.delete_node(self.direct, second)
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": second}}
        self.direct.create(
            resources.NODES, json.dumps(body).encode(), timeout_s=TIMEOUT_S
        )
        self.touch(third)

    def touch(self, name: str = "boat-9") -> None:
        """Set a new label of a Node."""
        label = {"metadata": {"labels": {"turn": str(time.monotonic_ns())}}}
        self.direct.patch(
            resources.NODES, name, json.dumps(label).encode(), timeout_s=TIMEOUT_S
        )

    def truth(self) -> Mapping[str, objects.Bare]:
        body = self.direct.list_page(resources.NODES, query={}, timeout_s=TIMEOUT_S)
        page = objects.decode_list(body, objects.Bare)
        return {node.metadata.key: node for node in page.items}

    def agrees(self) -> bool:
        def versions(nodes: Mapping[str, objects.Bare]) -> Mapping[str, str]:
            return {key: node.metadata.resource_version for key, node in nodes.items()}

        return versions(self.truth()) == versions(self.store.items())

    def pid(self) -> int:
        process = processes.find(self.where, "kube-apiserver")
        assert process is not None
        return process.pid

    def restart(self) -> None:
        processes.stop(self.where, ["kube-apiserver"], patience_s=0.5)
        control_plane.up(self.where, progress.Silent())


def paged(harbour: Harbour) -> str:
    """40 Nodes come on 6 pages of 7."""
    waiting.until("the first list", harbour.store.synced.is_set)
    assert len(harbour.store.items()) == NODES
    counts = harbour.watched.counts
    # A list that stalls is begun again.
    assert 1 <= counts["list"] <= 1 + counts["failure"]
    assert 5 <= counts["page"] <= 5 * counts["list"]
    return f"6 pages, {counts['stall']} stalls"


def bookmarked(harbour: Harbour) -> str:
    """A watch that sees nothing goes on from where its bookmark was.

    It looks at no Node that changes, so only bookmarks tell it of a newer version.
    """
    watched = Watched(harbour.direct)
    quiet = store.Store(
        watched, resources.NODES, objects.Bare, label_selector="painted=red"
    )
    stop = threading.Event()
    thread = threading.Thread(target=quiet.run, args=(stop,))
    thread.start()
    try:

        def moved() -> bool:
            harbour.touch()
            return watched.resumed_from[-1:] > watched.resumed_from[:1]

        waiting.until("a watch from a bookmark's version", moved)
    finally:
        stop.set()
        thread.join()
    assert watched.counts["BOOKMARK"] > 0
    assert watched.counts["MODIFIED"] == 0
    lists, explained = watched.lists_since({})
    assert lists <= 1 + explained, "listed again without need"
    return f"resumed at +{watched.resumed_from[-1] - watched.resumed_from[0]}"


def dropped(harbour: Harbour) -> str:
    """What changes while nothing connects is heard of by resuming, not by a list."""
    before = harbour.watched.counts.copy()
    with harbour.pipe.shut():
        harbour.change()
    waiting.until("what was missed", harbour.agrees)
    lists, explained = harbour.watched.lists_since(before)
    assert lists <= explained
    return f"resumed, {lists} lists"


def silent(harbour: Harbour) -> str:
    """A connection that only looks alive is given up after the silence allowed."""
    began, before = time.monotonic(), harbour.watched.counts["stall"]
    with harbour.pipe.silent():
        harbour.change()
        assert not harbour.agrees(), "the pipe was not silent"
        waiting.until(
            "the store gives up", lambda: harbour.watched.counts["stall"] > before
        )
    waiting.until("what was missed", harbour.agrees)
    return f"{time.monotonic() - began:.0f} s"


def frozen(harbour: Harbour) -> str:
    """A server that is stopped for longer than the silence allowed loses nothing."""
    os.kill(harbour.pid(), signal.SIGSTOP)
    try:
        time.sleep(SILENCE_S + 2)
    finally:
        os.kill(harbour.pid(), signal.SIGCONT)
    waiting.until("the server again", lambda: bool(harbour.truth()))
    harbour.change()
    waiting.until("what came after", harbour.agrees)
    return "went on"


def restarted(harbour: Harbour) -> str:
    """A server that is killed and comes back is watched again."""
    lists = harbour.watched.counts["list"]
    harbour.restart()
    harbour.change()
    waiting.until("what came after", harbour.agrees)
    return f"{harbour.watched.counts['list'] - lists} new lists"


def expired(harbour: Harbour) -> str:
    """A version the server has forgotten (410) is answered by a list: once.

    It starts with an empty watch cache after the changes were made; until then the
    watch only hangs, so that it is resumed, not given up.
    """
    before = harbour.watched.counts.copy()
    with harbour.pipe.silent():
        harbour.change()
        harbour.restart()
    waiting.until("what was missed", harbour.agrees)
    gone = harbour.watched.counts["410"] - before["410"]
    lists, explained = harbour.watched.lists_since(before)
    assert gone >= 1, "there was no 410"
    assert 1 <= lists <= explained
    return f"{gone} 410, {lists} lists"


def relisted(harbour: Harbour) -> str:
    """Lists leave nothing behind: the memory in use does not grow with their number."""
    api = harbour.direct
    own = store.Store(api, resources.NODES, objects.Bare, page_size=PAGE)
    for _ in range(5):
        own.relist()
    tracemalloc.start()
    try:
        own.relist()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(RELISTS):
            own.relist()
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < GROWTH_BYTES_MAX
    return f"{RELISTS} lists, {growth / 1024:+.0f} KiB"


def changed(harbour: Harbour) -> str:
    """Events leave nothing behind: memory does not grow with their number."""

    def take_in(changes: int) -> None:
        for _ in range(changes):
            harbour.touch()
        waiting.until("the changes", harbour.agrees)

    take_in(50)
    tracemalloc.start()
    try:
        take_in(50)
        before = tracemalloc.get_traced_memory()[0]
        take_in(CHANGES)
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < GROWTH_BYTES_MAX
    return f"{CHANGES} changes, {growth / 1024:+.0f} KiB"


@pytest.fixture()
def harbour(elsewhere: places.Places) -> Iterator[Harbour]:
    control_plane.up(elsewhere, progress.Silent())
    new_harbour = Harbour(elsewhere)
    stop = threading.Event()
    thread = threading.Thread(target=new_harbour.store.run, args=(stop,))
    try:
        for _ in range(NODES):
            new_harbour.create()
        thread.start()
        yield new_harbour
    finally:
        stop.set()
        thread.join(SILENCE_S + 5)
        new_harbour.pipe.close()
        processes.stop(elsewhere, control_plane.PROGRAMS, patience_s=1)
    assert not thread.is_alive()


def test_nothing_is_missed_nor_announced_twice(harbour: Harbour) -> None:
    """Through every fault each Node is announced as new once, and as gone once."""
    table = dict(
        zip(
            FAULTS,
            (
                paged,
                bookmarked,
                dropped,
                silent,
                frozen,
                restarted,
                expired,
                relisted,
                changed,
            ),
            strict=True,
        )
    )
    shown: dict[str, str] = {}
    try:
        for fault, inflict in table.items():
            shown[fault] = inflict(harbour)
            waiting.until(f"agreement after: {fault}", harbour.agrees)
            harbour.book.check(harbour.truth())
    finally:
        for fault in FAULTS:
            print(f"{fault:20} {shown.get(fault, 'MISSING')}")
    assert shown.keys() == set(FAULTS)
