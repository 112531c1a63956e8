"""A cluster, a router and the flow of routes in memory, and lives of the process."""

import collections
import copy
import datetime
import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.routes.cloud import NeutronRoutes
from lib.kube import events, resources, store
from lib.kube.fake import api as fake_api
from lib.kube.nodes import Node
from lib.reconcile import queue, runner
from lib.routes import flow, model, observe, records
from lib.routes.desired import Cidr
from lib.routes.model import TABLE, Topic

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
CREATED = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CLUSTER = "cluster-1"
QUIET_S = 12.0
"""So long nothing may be due for the process to count as settled."""
PODS = (ipaddress.ip_network("10.100.0.0/14"), ipaddress.ip_network("fd00:100::/32"))
Json = dict[str, Any]


class Killed(BaseException):
    """The process ends here."""


class Ground:
    """A cluster and a cloud, which outlive the processes that work on them.

    kill_at: the call, of the cloud or of the API server, at which the process ends:
    even numbers before it is carried out, odd ones after it. killed_in: what was being
    done then.
    """

    def __init__(self, *subnets: str, beside: "Ground | None" = None) -> None:
        """beside: a cluster with which this one shares cloud, network and router."""
        self.now = NOW
        self.api = fake_api.FakeApi(lambda: self.now)
        self.cluster_id: str = CLUSTER if beside is None else f"{CLUSTER}-beside"
        self.cloud: session.FakeOpenStack = (
            session.FakeOpenStack() if beside is None else beside.cloud
        )
        self.neutron = self.cloud.neutron
        if beside is None:
            self.neutron.l3.max_routes = 10_000
            network_id = self.neutron.add_network("inside")
            self.subnets = [
                self.neutron.add_subnet(network_id, cidr)
                for cidr in subnets or ("10.42.0.0/16", "fd00:42::/64")
            ]
            self.router_id = self.neutron.add_router(*self.subnets)
        else:
            self.subnets, self.router_id = beside.subnets, beside.router_id
        self.config_router = self.router_id
        self.acting = "reading"
        self.points = 0
        self.kill_at: int | None = None
        self.killed_in = ""
        self.api.before_call = self.api.after_call = self._point
        self.cloud.fault = self._before
        self.cloud.after = self._point
        self.fault: Callable[[wire.Call], session.Fault | None] = session.nothing

    def _before(self, call: wire.Call) -> session.Fault | None:
        self._point(call)
        return self.fault(call)

    def _point(self, call: object) -> None:
        del call
        self.points += 1
        if self.points - 1 == self.kill_at:
            self.killed_in = self.acting
            raise Killed

    # ------------------------------------------------------------ the cluster

    def node(
        self,
        name: str,
        *pod_cidrs: str,
        addresses: Sequence[str] | None = None,
        age_s: float = 0.0,
        taints: Sequence[str] = (),
    ) -> list[str]:
        """Have a Node, with a port of its server unless it has addresses given.

        Return its addresses. age_s: how much older than others. taints: keys.
        """
        if addresses is None:
            addresses = self.addresses(name) or self.port(f"server-{name}")
        listed = [{"type": "InternalIP", "address": a} for a in addresses]
        document: Json = {
            "metadata": {"name": name},
            "spec": {
                "providerID": f"openstack:///server-{name}",
                "podCIDRs": list(pod_cidrs),
                "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
            },
            "status": {"addresses": listed, "conditions": self._conditions(name)},
        }
        self.now = CREATED - datetime.timedelta(seconds=age_s)
        self.api.put(resources.NODES, document)
        self.now = NOW
        return list(addresses)

    def _conditions(self, name: str) -> list[Json]:
        old = self.get(name)
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        return old["status"]["conditions"] if old else ready

    def get(self, name: str) -> Json | None:
        """Return a Node."""
        for stored in self.api.all(resources.NODES):
            node: Json = dict(stored)
            if node["metadata"]["name"] == name:
                return copy.deepcopy(node)
        return None

    def delete(self, name: str) -> None:
        """Delete a Node, and nothing of its server."""
        self.api.remove(resources.NODES, name)

    def record(self) -> dict[str, str]:
        """Return the texts of the record, or of its first part."""
        return self.records().get("mooring-routes", {})

    def records(self) -> dict[str, dict[str, str]]:
        """Return the texts of the record by ConfigMap."""
        return {
            document["metadata"]["name"]: dict(document.get("data") or {})
            for document in map(dict[str, Any], self.api.all(resources.CONFIG_MAPS))
        }

    def edit_record(self, data: dict[str, str]) -> None:
        """Write the record as a person would."""
        meta = {"name": "mooring-routes", "namespace": "kube-system"}
        self.api.put(resources.CONFIG_MAPS, {"metadata": meta, "data": dict(data)})

    def condition(self, name: str) -> tuple[str, str] | None:
        """Return status and reason of a Node's NetworkUnavailable."""
        node = self.get(name)
        for condition in node["status"]["conditions"] if node else ():
            if condition["type"] == "NetworkUnavailable":
                return condition["status"], condition["reason"]
        return None

    def events(self) -> list[str]:
        """Return subject, reason and message of each Event."""
        events: list[Json] = [dict(e) for e in self.api.all(resources.EVENTS)]
        return [
            f"{e['involvedObject']['name']} {e['reason']}: {e['message']}"
            for e in events
        ]

    # ------------------------------------------------------------ the cloud

    def port(self, server_id: str) -> list[str]:
        """Create a port of a server with an address of each subnet; return those."""
        first, *others = self.subnets
        port = self.neutron.ports[self.neutron.add_port(first, device_id=server_id)]
        fixed = [
            {"subnet_id": subnet, "ip_address": self.neutron.free_address(subnet)}
            for subnet in others
        ]
        port["fixed_ips"] = [*wire.objects(port, "fixed_ips"), *fixed]
        return [str(ip["ip_address"]) for ip in wire.objects(port, "fixed_ips")]

    def port_of(self, name: str) -> Json:
        """Return the port of a Node's server."""
        ports = self.neutron.ports.values()
        return next(p for p in ports if p["device_id"] == f"server-{name}")

    def addresses(self, name: str) -> list[str]:
        """Return the addresses of a Node's port; none without one."""
        return [
            str(ip["ip_address"])
            for port in self.neutron.ports.values()
            if port["device_id"] == f"server-{name}"
            for ip in wire.objects(port, "fixed_ips")
        ]

    def router(self, router_id: str = "") -> Json:
        """Return a router."""
        return self.neutron.l3.routers[router_id or self.router_id]

    def routes(self, router_id: str = "") -> set[tuple[str, str]]:
        """Return destination and next hop of each route."""
        routes = wire.objects(self.router(router_id), "routes")
        return {(str(r["destination"]), str(r["nexthop"])) for r in routes}

    def put_route(self, destination: str, next_hop: str, router_id: str = "") -> None:
        """Add a route as another client would."""
        router = self.router(router_id)
        row = {"destination": destination, "nexthop": next_hop}
        router["routes"] = [*wire.objects(router, "routes"), row]
        router["revision_number"] += 1

    def put_pair(self, name: str, address: str) -> None:
        """Add an address pair to a Node's port as keepalived's operator would."""
        port = self.port_of(name)
        pair = {"ip_address": address, "mac_address": port["mac_address"]}
        port["allowed_address_pairs"] = [*port["allowed_address_pairs"], pair]
        port["revision_number"] += 1

    def pairs(self) -> dict[str, set[str]]:
        """Return the address pairs of each server's port that has any."""
        return {
            str(port["device_id"]): {str(p["ip_address"]) for p in pairs}
            for port in self.neutron.ports.values()
            if (pairs := wire.objects(port, "allowed_address_pairs"))
        }

    def state(self) -> Json:
        """Return all that outlives a process, but times and revisions."""
        nodes: list[Json] = [dict(stored) for stored in self.api.all(resources.NODES)]
        names = [str(node["metadata"]["name"]) for node in nodes]
        return {
            "routes": {id_: self.routes(id_) for id_ in self.neutron.l3.routers},
            "pairs": self.pairs(),
            "record": self.record(),
            "conditions": {name: self.condition(name) for name in names},
        }


class Process:
    """One life of the daemon's routes, with all that it keeps in memory."""

    def __init__(
        self,
        ground: Ground,
        cluster_cidrs: Sequence[Cidr] = PODS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """clock: of Events, Unix seconds."""
        self.ground = ground
        self.clock = ground.cloud.clock
        self.nodes = store.Store(ground.api, resources.NODES, Node)
        self.queue = queue.Queue(
            queue.Backoff(base_s=1, max_s=300),
            clock=self.clock,
            chance=lambda: 0.0,
        )
        self.recorder = events.Recorder(
            ground.api, component="route", host="", clock=clock, poll_s=0.01
        )
        self.disabled: list[str] = []
        self.actions = collections.Counter[str]()
        self.routes = NeutronRoutes(ground.cloud.client(), ground.config_router)
        self.flow = flow.RoutesFlow(
            sources=observe.Sources(
                self.nodes,
                lambda: self.routes,
                records.Records(ground.api, ground.api),
                lambda: ground.cluster_id,
                cluster_cidrs,
                lambda: NOW,
            ),
            reading=ground.api,
            writing=ground.api,
            recorder=self.recorder,
            add=self.queue.add,
            table_ref=events.ObjectRef("Lease", "ccm", "kube-system", "", "v1"),
            clock=self.clock,
            on_disabled=self.disabled.append,
        )
        flow.watch(self.nodes, self.flow, self.queue.add)
        self.nodes.relist()
        self.queue.add(TABLE, Topic.SYNC)

    def settle(self, quiet_s: float = QUIET_S) -> None:
        """Go on until nothing is due for a while."""
        began = last = self.clock()
        self.nodes.relist()
        while self.clock() < last + quiet_s:
            if self.turn():
                last = self.clock()
                self.nodes.relist()
            assert last < began + 3600, "the flow does not converge"
            self.clock.sleep(0.5)

    def drift(self, topic: Topic = Topic.DRIFT) -> list[str]:
        """Make one check for drift, and return the calls of the cloud that it made."""
        before = len(self.ground.cloud.calls)
        self.queue.add(TABLE, topic)
        self.settle()
        calls = self.ground.cloud.calls[before:]
        return [f"{call.method} {call.parts[0]}" for call in calls]

    def turn(self) -> int:
        """Reconcile all keys that are due, as one batch; return their number."""
        claims = self.queue.take_due(10_000)
        if not claims:
            return 0
        try:
            snapshots = self.flow.observe(claims)
        except Exception as error:
            for claim in claims:
                self._failed(claim, error)
                self.queue.done(claim.key)
            return len(claims)
        for claim in claims:
            if claim.key in snapshots:
                self._reconcile(claim, snapshots[claim.key])
            self.queue.done(claim.key)
        return len(claims)

    def _reconcile(self, claim: queue.Claim, snapshot: model.Snapshot) -> None:
        outcome = runner.decide(self.flow, snapshot, NOW)
        error: Exception | None = None
        try:
            for action in outcome.actions:
                self.ground.acting = type(action).__name__
                snapshot = self.flow.act(snapshot, action)
                self.actions[self.ground.acting] += 1
        except Exception as raised:
            error = raised
        finally:
            self.ground.acting = "reading"
        error = error or outcome.failure
        self.flow.ended(snapshot, error)
        if error is not None:
            self._failed(claim, error)
            return
        self.queue.forget(claim.key)
        if outcome.requeue_after_s is not None:
            self.queue.add_all(claim.key, claim.topics, outcome.requeue_after_s)

    def _failed(self, claim: queue.Claim, error: Exception) -> None:
        failure = self.flow.failure(error)
        if failure is None:
            raise error
        if failure.requeue_after_s is not None:
            self.queue.add_all(claim.key, claim.topics, failure.requeue_after_s)
            return
        self.queue.retry(claim.key, claim.topics, failure.retry_after_s)

    def tell(self) -> list[str]:
        """Send the Events that wait; return all there are."""
        stop = threading.Event()
        sender = threading.Thread(target=self.recorder.run, args=(stop,))
        sender.start()
        assert self.recorder.flush(10.0)
        stop.set()
        sender.join()
        return self.ground.events()
