"""Bad input, given to the daemon as its users run it: one table.

What can be known at the start ends it with one sentence for each problem. What shows at
run time is told by an Event or the log and by a metric, and is tried again in peace.
"""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.kube import cluster, pki, simulated_kubelet
from lib.lab.openstack import accounts, layout, tenant
from lib.lab.run import tls, waiting

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]

AT_START = (
    "cloud.conf missing",
    "cloud.conf a directory",
    "cloud.conf unreadable",
    "cloud.conf of wrong types",
    "no auth-url",
    "two ways to log in",
    "CA file missing",
    "kubeconfig missing",
    "kubeconfig not readable",
    "port in use",
    "flags that contradict each other",
)
AT_RUN_TIME = (
    "Keystone unreachable",
    "wrong password",
    "unknown CA",
    "malformed provider id",
    "provided-node-ip not among the addresses",
    "kubeconfig points nowhere",
)
SECRET = "wrong-but-secret"
SERVER = "bad-input-1"
FORM = "bad-input-form"
PATIENCE_S = waiting.LIMIT_S
WATCH_S = 8.0
CALLS_MAX = 30
"""Of one daemon to the cloud, or without an answer to the API server, in WATCH_S; a
busy machine stretches the window, so what counts is calls per second."""
TAINT = {"key": simulated_kubelet.TAINT, "value": "true", "effect": "NoSchedule"}
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"


@dataclasses.dataclass(frozen=True)
class Ground:
    """How to run the daemon, and files that are right."""

    where: places.Places
    pex: pathlib.Path
    conf: str
    kubeconfig: pathlib.Path
    folder: pathlib.Path

    def words(self, conf: pathlib.Path | str, *more: str) -> list[str]:
        return [
            *pexes.command(self.pex),
            "--cloud-provider=openstack",
            f"--cloud-config={conf}",
            f"--kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            *more,
        ]

    def file(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path

    @property
    def env(self) -> Mapping[str, str]:
        # Not all of our own: what Pants puts there makes a PEX talk.
        kept = {name: os.environ[name] for name in ("HOME", "PATH")}
        return {**kept, **pexes.environment(self.where)}


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
    project: MakeProject,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ground:
    account, mine = project("bad-input")
    server = mine.boot_another(SERVER)
    mine.wait({server.id}, "ACTIVE")
    conf = accounts.cloud_conf(where, account)
    folder = tmp_path_factory.mktemp("bad-input")
    return Ground(where, ccm_pex, conf, ccm_kubeconfig, folder)


Started = Mapping[str, tuple[list[str], list[str]]]
"""By case: the command line, and what has to be said, line by line."""


def bad_files(ground: Ground) -> Started:
    """Return the cases of cloud.conf."""
    binary = ground.folder / "binary.conf"
    binary.write_bytes(b"\xff\xfe" + SECRET.encode())
    types = f"{ground.conf}ipv6-support-disabled = maybe\n[Metadata]\nsearch-order = x"
    without = re.sub("auth-url = .*\n", "", ground.conf)
    second = ground.conf.replace("[Global]", f'[Global]\ntoken = "{SECRET}"')
    ca = ground.conf.replace("[Global]", '[Global]\nca-file = "/nonexistent/ca.pem"')
    return {
        "cloud.conf missing": (
            ground.words("/nonexistent/cloud.conf"),
            ["--cloud-config: /nonexistent/cloud.conf: no such file"],
        ),
        "cloud.conf a directory": (
            ground.words(ground.folder),
            [f"--cloud-config: {ground.folder}: is a directory"],
        ),
        "cloud.conf unreadable": (
            ground.words(binary),
            [f"--cloud-config: {binary}: not a text file in UTF-8"],
        ),
        "cloud.conf of wrong types": (
            ground.words(ground.file("types.conf", types)),
            [
                '[Networking] ipv6-support-disabled: invalid value "maybe": must',
                '[Metadata] search-order: invalid value "x": must be one or both of',
            ],
        ),
        "no auth-url": (
            ground.words(ground.file("no-url.conf", without)),
            ["[Global] auth-url: not set: must be the URL of Keystone"],
        ),
        "two ways to log in": (
            ground.words(ground.file("two.conf", second)),
            ["[Global] token: must not be set together with password"],
        ),
        "CA file missing": (
            ground.words(ground.file("ca.conf", ca)),
            ["[Global] ca-file: /nonexistent/ca.pem: no such file"],
        ),
    }


def bad_flags(ground: Ground, port: int) -> Started:
    """Return the cases of other flags, and of one with another."""
    good = ground.file("good.conf", ground.conf)
    yaml = ground.file("bad.kubeconfig", f"users: [{SECRET}")
    here = f"127.0.0.1:{port}"
    return {
        "kubeconfig missing": (
            ground.words(good, "--kubeconfig=/nonexistent/config"),
            ["--kubeconfig: /nonexistent/config: no such file"],
        ),
        "kubeconfig not readable": (
            ground.words(good, f"--kubeconfig={yaml}"),
            [f"--kubeconfig: {yaml}: not YAML"],
        ),
        "port in use": (
            ground.words(good, f"--secure-port={port}"),
            [
                f'serving address: invalid value "{here}": must be an address of this'
                " host with a free"
            ],
        ),
        "flags that contradict each other": (
            ground.words(
                good,
                "--cloud-provider=aws",
                "--node-monitor-period=soon",
                "--controllers=nodes",
                "--leader-elect-lease-duration=5s",
                f"--tls-cert-file={good}",
                "--no-such-flag",
            ),
            [
                '--node-monitor-period: invalid value "soon": must be a duration',
                "--no-such-flag: unknown flag",
                '--cloud-provider: invalid value "aws": must be openstack',
                '--controllers: unsupported value "nodes": must be one of',
                "--tls-private-key-file: not set: must be the path of a file, since",
                '--leader-elect-lease-duration: invalid value "5s": must be more than',
            ],
        ),
    }


def run(ground: Ground, words: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        words, env=ground.env, capture_output=True, text=True, timeout=900, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_what_is_wrong_at_the_start_is_one_sentence_each(ground: Ground) -> None:
    """Exit code 2, a line for each problem and no other one, nothing half begun."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = {**bad_files(ground), **bad_flags(ground, port)}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = pool.map(lambda case: run(ground, case[0]), cases.values())
            outcomes = dict(zip(cases, results, strict=True))
    for name, (code, output) in outcomes.items():
        for line in output.splitlines():
            print(f"{name:35} {code}  {line}")
    assert set(outcomes) == set(AT_START), "a row for each case"
    for name, (code, output) in outcomes.items():
        assert code == 2, name
        expected = cases[name][1]
        lines = output.splitlines()
        assert len(lines) == len(expected), output
        for line, words in zip(lines, expected, strict=True):
            assert line.startswith("openstack-ccm: ")
            assert words in line
        assert SECRET not in output


@dataclasses.dataclass
class Daemon:
    """A daemon that runs: its log, its metrics."""

    process: subprocess.Popen[str]
    port: int
    log: pathlib.Path

    def get(self, path: str) -> tuple[int, str]:
        context = tls.unverified()
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=20, context=context
        )
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except OSError:
                return 0, ""

    def counted(self, name: str, *labels: str) -> float:
        """Sum a metric over all series with these labels."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{name}{{", f"{name} "))
            and all(label in line for label in labels)
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(ground: Ground, name: str, conf: str, *more: str) -> Iterator[Daemon]:
    port, log = free_port(), ground.folder / f"{name}.log"
    words = ground.words(
        ground.file(f"{name}.conf", conf),
        f"--secure-port={port}",
        "--authorization-always-allow-paths=/livez,/readyz,/metrics",
        *more,
    )
    with log.open("w") as out:
        process = subprocess.Popen(
            words, env=ground.env, stdout=out, stderr=out, text=True
        )
    try:
        yield Daemon(process, port, log)
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def unknown_authority(folder: pathlib.Path) -> Iterator[str]:
    """Yield the URL of a server whose certificate nobody here knows."""
    now = datetime.datetime.now(datetime.UTC)
    authority = pki.authority("unknown", now)
    subject = pki.Subject("keystone", names=("127.0.0.1",))
    pki.keep(folder, "unknown", pki.issue(authority, subject, now))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "unknown.crt", folder / "unknown.key")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        stop = threading.Event()

        def shake_hands() -> None:
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    accepted, _ = listener.accept()
                    accepted.settimeout(5)
                    context.wrap_socket(accepted, server_side=True).close()

        thread = threading.Thread(target=shake_hands)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/v3"
        stop.set()
        thread.join()


@contextlib.contextmanager
def bad_nodes(api: client.Api) -> Iterator[None]:
    """A Node with an id of no form, and one that asks for an address it lacks."""
    form = {"providerID": "openstack://no/such/form", "taints": [TAINT]}
    asks = {PROVIDED_IP: "203.0.113.9"}
    bodies: list[dict[str, object]] = [
        {"metadata": {"name": FORM}, "spec": form},
        {
            "metadata": {"name": SERVER, "annotations": asks},
            "spec": {"taints": [TAINT]},
        },
    ]
    try:
        for body in bodies:
            whole = {"apiVersion": "v1", "kind": "Node", **body}
            api.create(resources.NODES, json.dumps(whole).encode(), timeout_s=10)
        yield
    finally:
        for name in (FORM, SERVER):
            cluster.delete_node(api, name)


def events_of(api: client.Api, node: str) -> list[tuple[str, str]]:
    query = {"fieldSelector": f"involvedObject.name={node}"}
    page = api.list_page(resources.EVENTS, query=query, timeout_s=10)
    return [(event["reason"], event["message"]) for event in json.loads(page)["items"]]


@dataclasses.dataclass(frozen=True)
class Row:
    """What one case has to show. event: of the Node that must get it; "": the log."""

    daemon: Daemon
    node: str
    reason: str
    words: str
    metric: tuple[str, ...]
    calls: tuple[str, ...]

    def seen(self, api: client.Api) -> str:
        """Return what was said; empty while it was not, or not counted."""
        if self.node:
            messages = [
                message
                for reason, message in events_of(api, self.node)
                if reason == self.reason and self.words in message
            ]
        else:
            lines = self.daemon.log.read_text().splitlines()
            messages = [line for line in lines if self.words in line]
        return messages[0] if messages and self.daemon.counted(*self.metric) else ""


FAILED = ("openstack_api_request_errors_total",)
CALLED = ("openstack_api_requests_total",)
UNANSWERED = ("rest_client_requests_total", 'code="0"')


def of_the_cloud(
    ground: Ground, stack: contextlib.ExitStack
) -> Mapping[str, tuple[str, str, str]]:
    """Return a cloud.conf for each case, and the reason and words of the Event."""
    keystone = layout.of(ground.where).url(layout.KEYSTONE, "/v3")
    password = f'password = "{layout.PASSWORD}"'
    assert keystone in ground.conf
    assert password in ground.conf
    url = stack.enter_context(unknown_authority(ground.folder))
    return {
        "Keystone unreachable": (
            ground.conf.replace(keystone, "http://127.0.0.1:1/v3"),
            "CloudUnavailable",
            "the cloud can't be reached",
        ),
        "wrong password": (
            ground.conf.replace(password, f'password = "{SECRET}"'),
            "CredentialsRejected",
            "Keystone refuses the credentials",
        ),
        "unknown CA": (
            ground.conf.replace(keystone, url),
            "CloudUnavailable",
            "the cloud's TLS certificate is not accepted",
        ),
    }


def of_nodes(good: Daemon) -> Mapping[str, Row]:
    def said(reason: str) -> tuple[str, ...]:
        return ("mooring_events_recorded_total", f'reason="{reason}"')

    form, asked = "ProviderMismatch", "ProvidedNodeIPUnknown"
    wrong = "'openstack://no/such/form' is not of the form"
    other = 'unsupported value "203.0.113.9": must be an address of the instance: '
    return {
        "malformed provider id": Row(good, FORM, form, wrong, said(form), CALLED),
        "provided-node-ip not among the addresses": Row(
            good, SERVER, asked, other, said(asked), CALLED
        ),
    }


def rows(
    ground: Ground, api: client.Api, stack: contextlib.ExitStack
) -> dict[str, Row]:
    """Start a daemon for each kind of bad input, all at once."""

    def start(name: str, conf: str, *more: str) -> Daemon:
        name = name.replace(" ", "-")
        return stack.enter_context(running(ground, name, conf, *more))

    nowhere = ground.folder / "nowhere"
    text = ground.kubeconfig.read_text()
    nowhere.write_text(re.sub(r"server: .*", "server: https://127.0.0.1:1", text))
    clouds = of_the_cloud(ground, stack)
    stack.enter_context(bad_nodes(api))
    lost = start("lost", ground.conf, f"--kubeconfig={nowhere}")
    words = "https://127.0.0.1:1: connection refused"
    return {
        **{
            name: Row(start(name, conf), SERVER, reason, message, FAILED, CALLED)
            for name, (conf, reason, message) in clouds.items()
        },
        **of_nodes(start("good", ground.conf)),
        "kubeconfig points nowhere": Row(lost, "", "", words, UNANSWERED, UNANSWERED),
    }


def all_told(table: Mapping[str, Row], api: client.Api) -> dict[str, str]:
    """Wait until every daemon serves and has reported its problem; return the reports.

    A row that is missing was not reported within waiting.LIMIT_S.
    """
    messages: dict[str, str] = {}
    end = time.monotonic() + PATIENCE_S
    serving = {row.daemon.port: row.daemon for row in table.values()}
    while time.monotonic() < end and (len(messages) < len(table) or serving):
        for name, row in table.items():
            if name not in messages and (words := row.seen(api)):
                messages[name] = words
        serving = {
            port: daemon
            for port, daemon in serving.items()
            if daemon.get("/livez")[0] != 200
        }
        time.sleep(0.2)
    return messages


def calls_per_window(table: Mapping[str, Row]) -> dict[str, float]:
    """Watch for WATCH_S; return the calls of each row, scaled to that time."""
    began = time.monotonic()
    before = {name: row.daemon.counted(*row.calls) for name, row in table.items()}
    time.sleep(WATCH_S)
    after = {name: row.daemon.counted(*row.calls) for name, row in table.items()}
    share = WATCH_S / (time.monotonic() - began)
    return {name: (after[name] - before[name]) * share for name in table}


def test_what_shows_at_run_time_is_told_counted_and_tried_again_in_peace(
    ground: Ground, api: client.Api
) -> None:
    """The process lives, no Node was touched, and nobody is called in a hot loop."""
    with contextlib.ExitStack() as stack:
        table = rows(ground, api, stack)
        assert set(table) == set(AT_RUN_TIME), "a row for each case"
        messages = all_told(table, api)
        calls = calls_per_window(table)
        for name, row in table.items():
            code = row.daemon.process.poll()
            print(
                f"{name:42} runs={code is None} calls={calls[name]:3.0f}"
                f" {messages.get(name)}"
            )
        assert set(messages) == set(table)
        for name, row in table.items():
            assert row.daemon.process.poll() is None, name
            assert row.daemon.get("/livez")[0] == 200, name
            assert calls[name] <= CALLS_MAX, name
            log = row.daemon.log.read_text()
            assert "Traceback" not in log, name
            assert SECRET not in log, name
        for name in (FORM, SERVER):
            body = api.read(resources.NODES, name, timeout_s=10)
            node = json.loads(body)
            assert TAINT in node["spec"]["taints"], name
        assert not any(SECRET in message for _, message in events_of(api, SERVER))
