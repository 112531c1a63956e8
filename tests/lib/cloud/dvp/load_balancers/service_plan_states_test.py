"""From any state of the parent, plans converge: in any order, also applied twice."""

import copy
import datetime
import random
from collections.abc import Iterator
from typing import Any

import hypothesis
import msgspec
from hypothesis import strategies

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.load_balancers import (
    desired_service,
    lb_names,
    observed_service,
    service_plan,
)
from lib.cloud.dvp.load_balancers.observed_service import LabelledVm, ParentObjects
from lib.cloud.dvp.load_balancers.service_plan import LabelWrite
from lib.cloud.load_balancers import (
    Cluster,
    Facts,
    Node,
    Observed,
    Plan,
    Port,
    Reason,
    Ref,
    Spec,
    Target,
)
from lib.cloud.steps import Step
from lib.kube.fake import documents

Json = dict[str, Any]
UUID = "cluster-a"
UID = "0a6f5f0c-57a4-4a4e-9c19-0f1b2d3c4e5f"
NAME = lb_names.object_name(UID)
KEY = lb_names.label_key(NAME)
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
HOSTS = tuple(f"node-{number}" for number in range(4))
PLAIN, CHECKED = kinds.SERVICES, kinds.HEALTHCHECKED_SERVICES


class PureParent:
    """Objects of one name and labels of VMs, changed by the requests of steps.

    objects: by kind. labelled: hosts of the VMs that have the label.
    """

    def __init__(self, objects: dict[str, Json], labelled: set[str]) -> None:
        self.objects = objects
        self.labelled = labelled
        self.requests = 0

    def observed(self, *, serves_checked: bool) -> Observed:
        def decoded(kind: kinds.ParentKind[Any]) -> kinds.ParentService | None:
            document = self.objects.get(kind.resource.kind)
            if document is None:
                return None
            return msgspec.convert(document, kinds.ParentService)

        vms = {host: (LabelledVm(host, f"uid-{host}", host),) for host in HOSTS}
        service, checked = decoded(PLAIN), decoded(CHECKED)
        address = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        child = {"metadata": {"name": NAME}, "status": address}
        if service is not None:
            status = msgspec.convert(address, kinds.ParentServiceStatus)
            service = msgspec.structs.replace(service, status=status)
        native = ParentObjects(
            UUID,
            service,
            checked,
            msgspec.convert(child, kinds.ParentService) if checked else None,
            serves_checked,
            vms,
            tuple(vms[host][0] for host in sorted(self.labelled)),
        )
        is_there = native.main is not None or bool(self.labelled)
        return Observed(is_there, NAME if native.main else "", native)

    def apply(self, step: Step) -> None:
        """Carry a request out, as the parent does."""
        self.requests += 1
        write = service_plan.of(step)
        if isinstance(write, LabelWrite):
            metadata: Any = write.document["metadata"]
            has_label = metadata["labels"][KEY] is not None
            (self.labelled.add if has_label else self.labelled.discard)(write.name)
            return
        kind = write.kind.resource.kind
        old = self.objects.get(kind)
        if write.document is None:
            if old is not None and old["metadata"]["uid"] == write.uid:
                del self.objects[kind]
        elif not write.uid:
            if old is None:
                self.objects[kind] = copy.deepcopy(write.document)
                self.objects[kind]["metadata"]["uid"] = "uid-new"
        elif old is not None and old["metadata"]["uid"] == write.uid:
            merged: Any = documents.merged(old, write.document)
            self.objects[kind] = merged


@strategies.composite
def parents(draw: strategies.DrawFn) -> PureParent:
    """Draw a parent: nothing, an object of each kind in any state, any labels."""
    chosen = draw(strategies.sampled_from([(), (PLAIN,), (CHECKED,), (PLAIN, CHECKED)]))
    objects: dict[str, Json] = {}
    for kind in chosen:
        labels = draw(
            strategies.fixed_dictionaries(
                {},
                optional={
                    ownership.CLUSTER: strategies.sampled_from([UUID, "cluster-b"]),
                    ownership.OWNER_UID: strategies.sampled_from([UID, "other"]),
                    "app": strategies.just("web"),
                },
            )
        )
        objects[kind.resource.kind] = {
            "metadata": {
                "name": NAME,
                "uid": f"uid-{kind.resource.kind}",
                "labels": labels,
                "annotations": draw(
                    strategies.dictionaries(
                        strategies.sampled_from(["a", "b", lb_names.COPIED_ANNOTATION]),
                        strategies.sampled_from(["1", "2", "a,b"]),
                    )
                ),
            },
            "spec": draw(specs()),
        }
    labelled = draw(strategies.sets(strategies.sampled_from(HOSTS)))
    return PureParent(objects, labelled)


def specs() -> strategies.SearchStrategy[Json]:
    ports: list[Json] = [
        {"port": 80, "protocol": "TCP", "targetPort": 30080},
        {"port": 80, "protocol": "UDP", "targetPort": "web"},
        {"port": 1, "name": "x", "protocol": "TCP"},
    ]
    selectors: list[Json] = [{KEY: lb_names.LABEL_VALUE}, {"app": "web"}, {}]
    probes: list[Json] = [{"mode": "TCP", "tcp": {"targetPort": 30080}}, {"mode": "X"}]
    return strategies.fixed_dictionaries(
        {"type": strategies.sampled_from(["LoadBalancer", "ClusterIP"])},
        optional={
            "ports": strategies.lists(strategies.sampled_from(ports), max_size=2),
            "selector": strategies.sampled_from(selectors),
            "externalTrafficPolicy": strategies.sampled_from(["Local", "Cluster"]),
            "externalIPs": strategies.just(["192.0.2.3"]),
            "loadBalancerIP": strategies.sampled_from(["", "192.0.2.4"]),
            "loadBalancerSourceRanges": strategies.just(["192.0.2.0/24"]),
            "healthcheck": strategies.fixed_dictionaries(
                {},
                optional={
                    "probes": strategies.lists(
                        strategies.sampled_from(probes), max_size=2
                    )
                },
            ),
        },
    )


def target(nodes: tuple[str, ...], facts: Json) -> Target:
    ref = Ref(Cluster(UUID, ""), "default", "web", UID)
    parsed = desired_service.parse(
        Facts(
            ref.cluster,
            ref.namespace,
            ref.name,
            UID,
            ports=(Port(80, node_port=30080),),
            nodes=tuple(map(Node, HOSTS)),
            is_local=True,
            serving_nodes=frozenset(nodes),
            **facts,
        ),
        desired_service.Forwarding(),
    )
    assert isinstance(parsed, Spec)
    return Target(ref, parsed)


def passes(
    parent: PureParent, goal: Target, rng: random.Random, *, serves: bool
) -> Iterator[Plan]:
    """Yield plans; the steps of each are applied in any order, some of them twice."""
    for _ in range(6):
        plan = service_plan.plan(goal, parent.observed(serves_checked=serves), NOW)
        yield plan
        steps = [*plan.steps, *(step for step in plan.steps if rng.random() < 0.3)]
        rng.shuffle(steps)
        for step in steps:
            parent.apply(step)


ANY_FACTS = strategies.fixed_dictionaries(
    {},
    optional={
        "annotations": strategies.dictionaries(
            strategies.sampled_from(["a", "b", "kubectl.kubernetes.io/x"]),
            strategies.sampled_from(["1", "2"]),
        ),
        "external_ips": strategies.just(("192.0.2.3",)),
        "load_balancer_ip": strategies.just("192.0.2.4"),
        "source_ranges": strategies.just(("192.0.2.0/24",)),
    },
)


@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(
    parent=parents(),
    serving=strategies.sets(strategies.sampled_from(HOSTS)),
    facts=ANY_FACTS,
    serves=strategies.booleans(),
    rng=strategies.randoms(use_true_random=False),
)
def test_any_state_converges_or_is_refused_without_a_write(
    parent: PureParent,
    serving: set[str],
    facts: Json,
    serves: bool,
    rng: random.Random,
) -> None:
    """Then deletes what is owned, and leaves what is not exactly as it was."""
    before = copy.deepcopy(parent.objects)
    goal = target(tuple(serving), facts)
    plans = list(passes(parent, goal, rng, serves=serves))
    if any(problem.reason is Reason.NOT_OWNED for problem in plans[0].problems):
        assert parent.requests == 0
        assert not any(plan.settled for plan in plans)
    else:
        assert plans[-1].settled, [str(step) for step in plans[-1].steps]
        assert plans[1].steps == (), "one reconciliation suffices"
        assert parent.labelled == serving
    list(passes(parent, Target(goal.ref, None), rng, serves=serves))
    assert parent.labelled == set()
    for kind, document in parent.objects.items():
        assert document == before[kind], "only what is not owned is left"
        service = msgspec.convert(document, kinds.ParentService)
        assert observed_service.other_owner(service, UUID, UID)
