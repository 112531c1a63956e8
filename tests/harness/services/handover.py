"""A cluster whose Services are served by the reference and by ours, in turns.

Both work on one project through one entrance, at which their calls are counted.
"""

import contextlib
import datetime
import pathlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from lib.kube import resources
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane, simulated_kubelet
from lib.lab.kube.kube_objects import NODE, Json, Objects
from lib.lab.openstack import accounts, layout, tenant
from lib.lab.run import processes, waiting
from tests.harness.openstack import front
from tests.harness.services import reference, services

NAMESPACE = "handover"
CLUSTER = "mooring-lab"
"""Source of the names of all load balancers; both have this setting."""
QUIET_S = 5.0
ENSURED = "EnsuredLoadBalancer"
"""The last Event about a new Service. Source: cloud-provider, service controller."""
POLL_S = 0.3


class Handover:
    """One cluster with a control plane of its own, which runs already.

    where: of the control plane; upstream: ports of the cloud's services.
    """

    def __init__(self, where: places.Places, upstream: Mapping[str, int]) -> None:
        self.where = where
        self.api = cluster.connect(control_plane.admin_kubeconfig(where))
        self.services = services.Services(self.api, NAMESPACE)
        self.entrance = front.Front(upstream)
        self._conf = where.state / "handover.conf"

    def prepare(
        self, account: accounts.Account, settings: Mapping[str, str], more: str = ""
    ) -> None:
        """Write the cloud.conf that both read.

        settings: of [LoadBalancer]. more: further sections.
        """
        url = self.entrance.url(layout.KEYSTONE, "/v3")
        text = reference.cloud_conf(self.where, account, settings, url)
        self._conf.write_text(f"{text}\n{more}")

    def add_nodes(self, mine: tenant.Tenant, kinds: Mapping[str, str]) -> None:
        """Have Nodes whose addresses are those of ports in a project's network.

        kinds: the value of the label "kind", by name.
        """
        now = datetime.datetime.now(datetime.UTC)
        for name, kind in kinds.items():
            server_id = str(uuid.uuid4())
            address = {"type": "InternalIP", "address": mine.add_port(name, server_id)}
            status = simulated_kubelet.manifest(name, now)["status"]
            Objects(self.api, "").make(
                NODE,
                name,
                {"labels": {"kind": kind}},
                spec={"providerID": f"openstack:///{server_id}"},
                status={**cast("Json", status), "addresses": [address]},
            )

    @contextlib.contextmanager
    def reference(self) -> Iterator[None]:
        """Run the reference until the block ends.

        Raises:
            LabError: it did not start.
        """
        try:
            reference.start_ccm(self.where, self._conf, CLUSTER)
            yield
        finally:
            reference.stop_ccm(self.where)

    @contextlib.contextmanager
    def ours(self, pex: pathlib.Path) -> Iterator[None]:
        """Run openstack-ccm with its own ServiceAccount until the block ends.

        Raises:
            LabError: it did not start.
        """
        control_plane.apply_manifests(self.where, ccm.manifest())
        kubeconfig = self.where.state / "handover-account"
        admin = control_plane.admin_kubeconfig(self.where)
        cluster.service_account_kubeconfig(self.api, admin, ccm.ACCOUNT, kubeconfig)
        more = (
            f"--controllers={reference.SERVICES}",
            f"--concurrent-service-syncs={reference.WORKERS}",
            "--leader-elect=false",
            f"--cluster-name={CLUSTER}",
        )
        words = ccm.arguments(self.where, kubeconfig, self._conf, more)
        try:
            ccm.start(self.where, pex, words)
            yield
        finally:
            processes.stop(self.where, [ccm.NAME])

    def events(self) -> list[Json]:
        """Return all Events about Services."""
        return Objects(self.api, NAMESPACE).all(resources.EVENTS)

    def unserved(self) -> list[str]:
        """Name those that have no address yet."""
        return sorted(
            name
            for name, service in self.services.all().items()
            if not services.ingress(service)
        )

    def unannounced(self) -> list[str]:
        """Return the names of Services without an Event that they are served."""
        announced = {
            event["involvedObject"]["uid"]
            for event in self.events()
            if event["reason"] == ENSURED
        }
        return sorted(
            name
            for name, service in self.services.all().items()
            if service["metadata"]["uid"] not in announced
        )

    def until(self, is_met: Callable[[], bool], what: str) -> None:
        """Wait for something.

        Raises:
            LabError: it did not come about in time.
        """

        def state() -> str:
            left = ", ".join(self.unserved()) or "none"
            return f"{what}; without an address: {left}"

        waiting.until(state, is_met, poll_s=POLL_S)

    def settle(self) -> None:
        """Wait until all are served and no requests reach the cloud.

        Raises:
            LabError: that does not come about.
        """
        self.until(lambda: self.unserved() == [], "addresses")
        last = [(-1, time.monotonic())]

        def is_quiet() -> bool:
            count, since = last[0]
            if count != len(self.entrance.calls):
                last[0] = (len(self.entrance.calls), time.monotonic())
                return False
            return time.monotonic() - since > QUIET_S

        self.until(is_quiet, "an end of calls")

    def writes(self, since: int) -> tuple[front.Call, ...]:
        """Return the writes of the cloud since so many calls had come through."""
        return tuple(
            call
            for call in self.entrance.calls[since:]
            if call.method != "GET" and call.service != layout.KEYSTONE
        )
