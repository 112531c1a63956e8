from typing import Any

from tests.harness.services import transcripts

ID = "11111111-2222-4333-8444-555555555555"
SERVICE: dict[str, Any] = {
    "metadata": {
        "uid": "one",
        "annotations": {
            "loadbalancer.openstack.org/load-balancer-id": ID,
            "loadbalancer.openstack.org/load-balancer-address": "198.51.100.7",
            "a": "b",
        },
    },
    "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.7", "ipMode": "VIP"}]}},
}


def event(uid: str, message: str) -> dict[str, Any]:
    return {
        "source": {"component": "service-controller"},
        "type": "Normal",
        "reason": "Ensured",
        "message": message,
        "involvedObject": {"uid": uid},
    }


def test_ids_and_addresses_are_left_out() -> None:
    """Two load balancers of one kind of Service have one transcript."""
    transcript = transcripts.of(SERVICE, [event("one", f"{ID} has 198.51.100.7")])
    expected = ("service-controller", "Normal", "Ensured", "<id> has <address>")
    assert transcript.events == {expected}
    assert list(transcript.annotations.values()) == ["<id>", "<address>", "b"]
    assert '"ip": "<address>", "ipMode": "VIP"' in transcript.status
    assert transcript.finalizers == ()


def test_events_of_an_earlier_service_of_the_name_do_not_count() -> None:
    """They outlive it for an hour."""
    transcript = transcripts.of(SERVICE, [event("other", "gone"), event("one", "here")])
    assert {message for *_, message in transcript.events} == {"here"}
