"""One Service as a pass may see it, for tables of what is decided and planned."""

import dataclasses
import datetime

from lib.balancers import model
from lib.balancers.model import Snapshot, Topic
from lib.cloud import errors
from lib.cloud.load_balancers import (
    Cluster,
    Ingress,
    IpMode,
    Node,
    Observed,
    Reason,
    Ref,
    Results,
    Spec,
    Target,
)
from lib.cloud.model import Seen
from lib.cloud.steps import CommonReason, Problem
from lib.kube import objects

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
REF = Ref(Cluster("id", "kubernetes"), "default", "web", "uid")
WANTED, GONE = Target(REF, Spec("tree")), Target(REF, None)
WEB = model.Service(
    objects.ObjectMeta(
        name="web",
        namespace="default",
        uid="uid",
        finalizers=(model.FINALIZER,),
        annotations={"id": "lb-0", "old": "x"},
    ),
    model.ServiceSpec(type="LoadBalancer"),
)
BARE = model.Service(
    objects.ObjectMeta(name="web", namespace="default", uid="uid"), WEB.spec
)
"""Nothing was written on it yet."""
THERE = Seen(Observed(True, "lb-1", None))
NOTHING = Seen(Observed(False, "", None))
OUTAGE = errors.Unavailable("503", operation="list load balancers")
BAD = Problem(Reason.INVALID_SERVICE, "no such subnet", is_fatal=True)
ODD = Problem(CommonReason.UNSUPPORTED, "no such thing")
RESULTS = Results(
    (Ingress(ip="192.0.2.1", ip_mode=IpMode.VIP), Ingress(hostname="a.example")),
    (("id", "lb-1"), ("old", None)),
)
SEEN = Snapshot(
    WEB,
    frozenset({Topic.SYNC}),
    target=WANTED,
    observed=THERE,
    nodes=(Node("node-1"),),
)
"""All is well."""


def snapshot_of(**changes: object) -> Snapshot:
    """Return `SEEN` with other fields."""
    return dataclasses.replace(SEEN, **changes)  # type: ignore[arg-type] # a table
