"""Two openstack-ccm, the PEX, and one Lease: who writes is read from the audit log.

The Nodes are healthy and have lost a label again and again, so that the leader has to
write without end. The audit log tells the revision of every write, and with which
token it came: one order for all, and an author for each.
"""

import base64
import contextlib
import dataclasses
import datetime
import json
import pathlib
import threading
from collections.abc import Callable, Iterator

import psutil
import pytest
import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane, simulated_kubelet
from lib.lab.run import processes, progress, waiting
from tests.harness.kube import audit

NODES = tuple(f"replica-{n}" for n in range(1, 5))
ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
LEASE_S, RENEW_S, RETRY_S = 8, 6, 1
FLAGS = (
    f"--leader-elect-lease-duration={LEASE_S}s",
    f"--leader-elect-renew-deadline={RENEW_S}s",
    f"--leader-elect-retry-period={RETRY_S}s",
)
HANDED_OVER_S = LEASE_S - RETRY_S
"""Before the Lease has run out: whoever waited for that would take longer."""
WRITES = 20
"""Of each leader, before it is ended."""
ENDS = ("kill -9", "SIGTERM", "SIGSTOP, SIGCONT")
CONF = """
[Global]
auth-url = http://127.0.0.1:1/v3
username = nobody
password = nothing
tenant-name = none
domain-id = default
region = nowhere
"""
"""No cloud answers: what is written here, openstack-ccm reads from the Nodes alone."""
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    users: ["system:serviceaccount:kube-system:openstack-ccm"]
    verbs: [create, update, patch]
    resources: [{group: ""}, {group: coordination.k8s.io}]
  - level: Metadata
"""


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclasses.dataclass(frozen=True)
class Replica:
    """One process. place: its own folders and port. credential: as in the audit log."""

    name: str
    place: places.Places
    credential: str

    @property
    def process(self) -> psutil.Process:
        process = processes.find(self.place, ccm.NAME)
        assert process is not None, f"{self.name} has ended"
        return process


class Race:
    """The replicas of one daemon, and what they have written."""

    def __init__(self, where: places.Places, pex: pathlib.Path, conf: str) -> None:
        self.where = where
        self.pex = pex
        self.api = cluster.connect(control_plane.admin_kubeconfig(where))
        self.conf = where.state / "cloud.conf"
        self.conf.write_text(conf)
        self.replicas: list[Replica] = []

    def enter(self) -> Replica:
        """Start one more."""
        number = len(self.replicas) + 1
        name = "abcdefg"[number - 1]
        base = self.where.port_base + 16 * number
        place = places.Places(self.where.cache, self.where.state / name, base)
        kubeconfig = place.state / "kubeconfig"
        admin = control_plane.admin_kubeconfig(self.where)
        cluster.service_account_kubeconfig(self.api, admin, ccm.ACCOUNT, kubeconfig)
        replica = Replica(name, place, credential_of(kubeconfig))
        self.replicas.append(replica)
        words = ccm.arguments(place, kubeconfig, self.conf, FLAGS)
        # The Nodes have no servers.
        ccm.start(place, self.pex, words, {"SKIP_NODE_DELETION": "true"})
        return replica

    def rows(self, resource: str) -> list[audit.Row]:
        """Return the writes that were carried out, oldest first."""
        rows = [
            row
            for row in audit.rows(self.where, ccm.ACCOUNT)
            if row.resource == resource
            and row.verb in ("create", "update", "patch")
            and row.code in (200, 201)
        ]
        return sorted(rows, key=lambda row: row.version)

    def terms(self) -> list[tuple[int, str, str]]:
        """Return each change of the Lease: revision, credential, when it was asked for.

        The credential is empty when the Lease was released.
        """
        terms = []
        for row in self.rows("leases"):
            spec = row.body["spec"]
            assert isinstance(spec, dict)
            holder = row.credential if spec.get("holderIdentity") else ""
            terms.append((row.version, holder, row.received))
        return terms

    def wait_for(self, replica: Replica) -> None:
        """Wait until it is in the midst of writing."""
        waiting.until(
            f"{replica.name} writes",
            lambda: sum(
                row.credential == replica.credential for row in self.rows("nodes")
            )
            >= WRITES,
        )

    def check(self) -> int:
        """See that each was written while its author held the Lease; count them."""
        terms = self.terms()
        names = {replica.credential: replica.name for replica in self.replicas}
        written = self.rows("nodes")
        for row in written:
            before = [term for term in terms if term[0] < row.version]
            assert before, f"{names[row.credential]} wrote before anybody led"
            assert before[-1][1] == row.credential, (
                f"{names[row.credential]} wrote {row.name} at {row.version}, while"
                f" {names.get(before[-1][1], 'nobody')} held the Lease"
            )
        return len(written)

    def took_s(self, replica: Replica, since: datetime.datetime) -> float:
        """Return the seconds until it had asked for the Lease and got it."""
        times = [
            datetime.datetime.fromisoformat(at)
            for _, holder, at in self.terms()
            if holder == replica.credential
        ]
        return (times[0] - since).total_seconds()

    def end(self) -> None:
        for replica in self.replicas:
            processes.stop(replica.place, [ccm.NAME])


def credential_of(kubeconfig: pathlib.Path) -> str:
    """Return the id of the token, as the API server writes it down.

    Source: Kubernetes, ServiceAccountTokenJTI.
    """
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    claims = token.split(".")[1]
    padded = claims + "=" * (-len(claims) % 4)
    return f"JTI={json.loads(base64.urlsafe_b64decode(padded))['jti']}"


class Nodes:
    """Healthy Nodes whose newer zone label is wrong again and again."""

    def __init__(self, api: client.Api) -> None:
        self._api = api
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._each, args=(target, pause_s))
            for target, pause_s in ((self._beat, 2.0), (self._spoil, 0.1))
        ]

    def start(self) -> None:
        for name in NODES:
            body = simulated_kubelet.manifest(name, utc_now())
            body["spec"] = {"providerID": f"openstack:///{name}"}
            meta, status = body["metadata"], body["status"]
            assert isinstance(meta, dict)
            assert isinstance(status, dict)
            meta["labels"][ZONE[0]] = "right"
            status["addresses"].append({"type": "InternalIP", "address": "10.0.0.1"})
            self._api.create(resources.NODES, json.dumps(body).encode(), timeout_s=10)
        for thread in self._threads:
            thread.start()

    def _each(self, do: Callable[[str], object], pause_s: float) -> None:
        while not self._stop.wait(pause_s):
            for name in NODES:
                with contextlib.suppress(kube_errors.KubeError):
                    do(name)

    def _beat(self, name: str) -> None:
        simulated_kubelet.beat(self._api, name, utc_now())

    def _spoil(self, name: str) -> None:
        body = json.dumps({"metadata": {"labels": {ZONE[1]: "wrong"}}}).encode()
        self._api.patch(resources.NODES, name, body, timeout_s=10)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(60)


@pytest.fixture()
def race(elsewhere: places.Places, ccm_pex: pathlib.Path) -> Iterator[Race]:
    policy = elsewhere.state / "policy.yaml"
    policy.write_text(POLICY)
    more = [f"--audit-policy-file={policy}"]
    with contextlib.ExitStack() as stack:
        stack.callback(processes.stop, elsewhere, control_plane.PROGRAMS, patience_s=1)
        control_plane.up(elsewhere, progress.Silent(), api_arguments=more)
        new_race = Race(elsewhere, ccm_pex, CONF)
        cluster.create_all(new_race.api, ccm.manifest())
        nodes = Nodes(new_race.api)
        stack.callback(nodes.end)
        nodes.start()
        stack.callback(new_race.end)
        yield new_race


def killed(race: Race, leader: Replica, next_one: Replica) -> str:
    """A leader that died is followed when its time is over."""
    at = utc_now()
    leader.process.kill()
    race.wait_for(next_one)
    return f"{next_one.name} after {race.took_s(next_one, at):.1f} s"


def terminated(race: Race, leader: Replica, next_one: Replica) -> str:
    """A leader told to end hands over at once, by an empty Lease."""
    at = utc_now()
    leader.process.terminate()
    race.wait_for(next_one)
    took_s = race.took_s(next_one, at)
    assert "" in [holder for _, holder, _ in race.terms()], "it was not released"
    assert took_s < HANDED_OVER_S
    return f"{next_one.name} after {took_s:.1f} s"


def stopped(race: Race, leader: Replica, next_one: Replica) -> str:
    """A leader that slept through its time writes nothing more, and ends."""
    at = utc_now()
    process = leader.process
    process.suspend()
    race.wait_for(next_one)
    process.resume()
    waiting.until(
        "the sleeper has ended", lambda: processes.find(leader.place, ccm.NAME) is None
    )
    return f"{next_one.name} after {race.took_s(next_one, at):.1f} s"


def test_two_replicas_never_write_in_one_term(race: Race) -> None:
    """Whatever ends a leader, every write lies within the Lease of its author."""
    steps = dict(zip(ENDS, (killed, terminated, stopped), strict=True))
    shown: dict[str, str] = {}
    leader = race.enter()
    race.wait_for(leader)
    try:
        for end, step in steps.items():
            next_one = race.enter()
            result = step(race, leader, next_one)
            shown[end] = f"{result}; {race.check()} writes, none out of turn"
            leader = next_one
        assert len({row.credential for row in race.rows("nodes")}) == len(ENDS) + 1
    finally:
        for end in ENDS:
            print(f"{end:20} {shown.get(end, 'MISSING')}")
    assert shown.keys() == set(ENDS)
