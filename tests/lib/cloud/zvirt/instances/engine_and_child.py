"""A cluster and the engine of its VMs in memory, for processes of the Nodes flow."""

import collections
from collections.abc import Mapping
from typing import Any

from lib.cloud.zvirt import client, home, http
from lib.cloud.zvirt.instances import cloud
from lib.kube.fake import api as fake_api
from tests.harness.nodes import walk
from tests.harness.zvirt.vms_of_nodes import Vms
from tests.lib.cloud.zvirt.engines import SETTINGS, Simulated
from tests.lib.lab.zvirt.stage import Stage

GONE = "zvirt://00000000-0000-4000-9000-000000000001"


class Ground:
    """Implements `walk.WalkGround`: a cluster and an engine.

    counts: requests to the engine by kind.
    """

    def __init__(
        self, rules: cloud.InstanceRules | None = None, other: "Ground | None" = None
    ) -> None:
        """other: a cluster of the same engine; None: the engine is a new one."""
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(lambda: walk.NOW)
        self.stage: Stage = Stage() if other is None else other.stage
        self.vms: Vms = Vms(self.stage.service) if other is None else other.vms
        self.rules = rules or cloud.InstanceRules(topology=True)
        self.acting = "reading"
        self.actions = collections.Counter[str]()
        self.passed = 0
        self.die_at: int | None = None
        self.died_in = ""
        self.api.before_call = self.at_call
        self.api.after_call = self.at_call
        self._simulated = Simulated(self.stage)

    def at_call(self, call: object = None) -> None:
        """Die here, if it is the turn of this call."""
        del call
        self.passed += 1
        if self.passed - 1 == self.die_at:
            self.died_in = self.acting
            raise walk.Death

    def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> http.EngineResponse:
        self.at_call()
        response = self._simulated(method, url, headers, body, timeout_s)
        self.at_call()
        return response

    def open(self) -> cloud.EngineInstances:
        access = client.EngineClient(
            lambda: SETTINGS,
            self._exchange,
            clock=lambda: self.now_s,
            wall_clock=lambda: 1_700_000_000.0,
        )
        place = home.EngineHome(access, clock=lambda: self.now_s)
        return cloud.EngineInstances(access, place, self.rules, lambda: self.now_s)

    def state(self) -> Any:
        return walk.state(self.api)

    @property
    def requests(self) -> collections.Counter[str]:
        """Requests to the engine by kind, without authentication."""
        counts = collections.Counter(self.stage.service.counts)
        return collections.Counter(
            {kind: count for kind, count in counts.items() if "sso/" not in kind}
        )

    @property
    def sent(self) -> frozenset[str]:
        """Methods and paths of all requests, also of those for tokens."""
        return frozenset(self._simulated.requests)

    def node(
        self,
        name: str,
        *taints: dict[str, str],
        vm: str = "",
        ready: str = "True",
        provider_id: str = "",
    ) -> None:
        """Create a Node. vm: ID of its VM; provider_id precedes it."""
        walk.put_node(self.api, name, taints, ready, provider_id or f"zvirt://{vm}")


def everything() -> Ground:
    """Set up one Node for every thing the flow does, and two it must leave alone."""
    ground = Ground()
    vms = {name: ground.vms.boot(name) for name in ("new-1", "new-2", "steady", "back")}
    vms["off"] = ground.vms.create("off")
    ground.node("new-1", walk.NEW, walk.MINE)
    ground.node("new-2", walk.NEW)
    ground.node("steady", walk.MINE, vm=vms["steady"])
    ground.node("off", walk.MINE, vm=vms["off"], ready="Unknown")
    ground.node("back", walk.SHUT, vm=vms["back"])
    ground.node("gone", ready="Unknown", provider_id=GONE)
    ground.node("gone-new", walk.NEW, ready="Unknown")
    ground.node("static", ready="Unknown", provider_id="static://a/b")
    return ground
