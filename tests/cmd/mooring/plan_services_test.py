"""How plans of Services are printed, for people and for programs."""

import io
import json
from typing import Any

import click
import pytest
import rich.console

from lib.balancers.preview import Row, State
from lib.ccm import previews
from lib.cloud.dvp import config
from lib.cloud.dvp.load_balancers import desired_service
from lib.cloud.explained import FieldChange, Touched
from lib.cloud.load_balancers import Reason
from lib.cloud.steps import Problem, Verb
from lib.kube import kube_config
from mooring.commands import daemon, on_dvp, plan_services

BUSY = "load balancer b: provisioning_status is PENDING_UPDATE"
BALANCER = "load balancer kube_service_k_default_web"
LISTENER = (BALANCER, "listener l [80]")
ASKED = "annotation x/connection-limit, or its default"
CHANGED = Row(
    "default/web",
    State.WOULD_CHANGE,
    load_balancer=f"{BALANCER} (lb-1), ACTIVE",
    touched=(
        Touched(
            LISTENER, Verb.CHANGE, (FieldChange("connection_limit", "-1", "5", ASKED),)
        ),
        Touched(
            (BALANCER, "pool p", "members"),
            Verb.CREATE,
            tuple(
                FieldChange(f"10.0.0.{at}:30080", "", f"node-{at}") for at in range(20)
            ),
            is_later=True,
        ),
        Touched(
            ("Service", "finalizer"),
            Verb.CHANGE,
            (FieldChange("metadata.finalizers", "", "cleanup"),),
            "it is kept",
        ),
    ),
    notices=("SomeReason: some words",),
    not_owned=(f"{BALANCER} (lb-2), of another cluster",),
)
INVALID = Row(
    "default/wrong",
    State.INVALID,
    problems=(Problem(Reason.UNKNOWN_CLASS, "annotation class is 'gold'", True),),
)
IN_SYNC = Row(
    "default/well", State.IN_SYNC, load_balancer="load balancer w (lb-3), ACTIVE"
)
PENDING = Row("default/busy", State.PENDING, BUSY)
UNKNOWN = Row("default/dark", State.UNKNOWN, "list load balancers: silent")


def printed(*rows: Row, others: int = 0) -> list[str]:
    file = io.StringIO()
    console = rich.console.Console(file=file, width=500, highlight=False)
    plan_services.show(previews.ServicesPreview(rows, others), console)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_tree_shows_old_and_new_at_each_leaf() -> None:
    """Brackets in names stay as they are; long lists are cut."""
    lines = printed(CHANGED)
    print("\n".join(lines))
    members = [f"10.0.0.{at}:30080 node-{at}" for at in range(12)]
    assert lines == [
        f"default/web: would change ({BALANCER} (lb-1), ACTIVE)",
        "├── ! SomeReason: some words",
        f"├── ! not owned: {BALANCER} (lb-2), of another cluster",
        f"├── {BALANCER}",
        "│   ├── ~ listener l [80]",
        "│   │   └── connection_limit: -1 -> 5 (annotation x/connection-limit, or its"
        " default)",
        "│   └── pool p",
        "│       └── + members (afterwards)",
        f"│           └── {', '.join(members)} and 8 more",
        "└── Service",
        "    └── ~ finalizer: it is kept",
        "        └── metadata.finalizers: none -> cleanup",
    ]


def test_the_others_are_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A Service that could not be read is shown once, where the others are."""
    lines = printed(IN_SYNC, PENDING, UNKNOWN, INVALID)
    assert lines == [
        "default/well: InSync (load balancer w (lb-3), ACTIVE)",
        "default/busy: Pending: load balancer b: provisioning_status is PENDING_UPDATE",
        "default/dark: Unknown: list load balancers: silent",
        "default/wrong: Invalid",
        "└── ! UnknownClass: annotation class is 'gold'",
    ]
    captured = capsys.readouterr()
    assert captured.err == ""


def test_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    for rows, others, sentence in (
        ((), 0, "No changes: 0 Services checked."),
        ((IN_SYNC,), 0, "No changes: 1 Service checked."),
        (
            (CHANGED, IN_SYNC, IN_SYNC),
            2,
            "3 Services checked: 1 would change, 2 InSync; 2 with a class of another"
            " controller.",
        ),
    ):
        printed(*rows, others=others)
        assert capsys.readouterr().out == f"{sentence}\n"


def test_programs_get_everything() -> None:
    plan = previews.ServicesPreview((CHANGED, INVALID), 1)
    document = json.loads(json.dumps(plan_services.document(plan)))
    assert document["totals"] == {"WouldChange": 1, "Invalid": 1}
    assert document["other_controllers"] == 1
    changed, refused = document["services"]
    assert changed["changes"][0] == {
        "path": list(LISTENER),
        "action": "change",
        "fields": [
            {
                "field": "connection_limit",
                "observed": "-1",
                "desired": "5",
                "requested_by": ASKED,
            }
        ],
        "reason": "",
        "is_later": False,
    }
    assert len(changed["changes"][1]["fields"]) == 20
    (problem,) = refused["problems"]
    assert problem["reason"] == "UnknownClass"
    assert problem["message"] == "annotation class is 'gold'"
    assert problem["is_fatal"] is True


def test_no_control_character_reaches_the_terminal() -> None:
    """Names in the cloud are written by others."""
    evil = "listener \x1b[2K\x1b[1G\x07 \u202e [80]"
    path = (evil, evil)
    changes = (FieldChange(evil, evil, evil, evil),)
    row = Row(
        "default/web",
        State.WOULD_CHANGE,
        evil,
        evil,
        (Touched(path, Verb.CHANGE, changes, evil),),
        (Problem(Reason.UNKNOWN_CLASS, evil),),
        (evil,),
        (evil,),
    )
    lines = printed(row, Row("default/dark", State.UNKNOWN, evil))
    assert all(line.isprintable() for line in lines)
    assert "\\x1b[2K" in "".join(lines)


def test_the_flags_of_dvp_ccm_are_those_of_the_plan(nowhere: tuple[str, ...]) -> None:
    """What a Service sends to the parent is planned as the manager would send it."""
    connection = kube_config.load(nowhere[1].partition("=")[2], env={})
    settings = config.ParentConfig("project", "uuid", connection)
    configured = on_dvp.OnDvp(settings)
    flags = {"--forwarded-annotations": "c.io/", "--forward-external-ips": "false"}
    all_, some = daemon.ManagerDeployment({}, ""), daemon.ManagerDeployment(flags, "")

    def forwarded(*asked: Any) -> desired_service.Forwarding:
        limited = plan_services.forwarding(configured, *asked)
        assert isinstance(limited, on_dvp.OnDvp)
        return limited.forwarded

    assert forwarded(all_) == desired_service.ALL
    assert forwarded(some) == desired_service.Forwarding(("c.io/",), False)
    expected = desired_service.Forwarding(("a.io/", "b.io/"), False)
    assert forwarded(some, "a.io/, b.io/", None) == expected
    assert forwarded(some, "*", True) == desired_service.ALL
    assert not forwarded(all_, "", None).copies("a.io/b")


def test_another_cloud_has_no_such_flags() -> None:
    """Without an option nothing is asked of it."""
    other: Any = object()
    manager = daemon.ManagerDeployment({"--forwarded-annotations": "a.io/"}, "")
    assert plan_services.forwarding(other, manager) is other
    for asked in (("a.io/", None), (None, False)):
        with pytest.raises(click.UsageError, match="only with --cloud=dvp"):
            plan_services.forwarding(other, manager, *asked)
