"""Calls are distinguished, and delays measured, as the lab's tests read them."""

import pytest

from tests.harness.openstack import front
from tests.harness.services import balancing

ID = "65a595b5-b5f4-4015-bc85-196bb71d6795"
LISTED = "/v2/lbaas/loadbalancers"


def call(
    path: str, at: float = 0.0, method: str = "GET", took_s: float = 0.1
) -> front.Call:
    return front.Call("octavia", method, path, 200, 0, at, at + took_s)


@pytest.mark.parametrize(
    ("path", "is_poll"),
    [
        (f"{LISTED}/{ID}", True),
        (f"{LISTED}?fields=id&fields=provisioning_status&project_id=1", True),
        (f"{LISTED}?project_id=1", False),
        (f"{LISTED}/{ID}/status", False),
        (f"/v2/lbaas/listeners?load_balancer_id={ID}", False),
    ],
)
def test_polls_are_known_from_other_reads(path: str, is_poll: bool) -> None:
    """A poll asks for nothing but whether Octavia is ready."""
    entrance = front.Front({})
    counted = balancing.Counted(entrance)
    entrance.calls.append(call(path))
    assert bool(counted.polls()) is is_poll


def test_ids_are_left_out_of_what_a_call_is() -> None:
    put = call(f"/v2/lbaas/pools/{ID}/members?limit=1", method="PUT")
    assert balancing.kind(put) == "PUT    octavia v2/lbaas/pools/*/members"


def test_only_who_asks_for_that_one_is_in_time() -> None:
    """Asked before, for another one, or never: none of these counts."""
    calls = [
        call(f"{LISTED}/{ID}", 1.0),
        call(f"{LISTED}/another", 2.5),
        call(f"/v2/lbaas/listeners?load_balancer_id={ID}", 3.0),
        call(f"{LISTED}/{ID}", 9.0),
    ]
    assert balancing.lags([(ID, 2.0), ("nobody", 2.0)], calls) == [1.0]
    of_all = call(f"{LISTED}?fields=id&fields=provisioning_status", 2.25)
    assert balancing.lags([(ID, 2.0), ("nobody", 4.0)], [*calls, of_all]) == [0.25]


def test_nobody_can_ask_again_before_the_answer() -> None:
    """A poll that Octavia takes 4 s to answer is no lateness of ours."""
    slow = call(f"{LISTED}/{ID}", 1.0, took_s=4.0)
    after = call(f"{LISTED}/{ID}", 6.5)
    assert balancing.lags([(ID, 2.0)], [slow, after]) == [1.5]
    assert balancing.lags([(ID, 5.5)], [slow, after]) == [1.0]


def test_polls_are_counted_for_each_change() -> None:
    """Those that come long after the last write are the machine's, and left out."""
    entrance = front.Front({})
    counted = balancing.Counted(entrance)
    entrance.calls += [
        call(LISTED, 0.0, "POST"),
        *(call(f"{LISTED}/{ID}", at) for at in (1.0, 2.0, 3.0, 60.0)),
    ]
    assert counted.polls_each(2) == 1.5


def test_how_late_polls_are_is_described() -> None:
    assert "median 1.0 s, 4.9 at most" in balancing.promptness([0.5, 1.0, 4.9])
