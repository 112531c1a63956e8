"""Nova's lists are read into the few words the lab shows."""

from lib.lab.grounds import servers
from lib.lab.openstack import tenant


def test_a_server_with_zone_flavor_and_addresses_of_all_networks() -> None:
    body = b"""{"servers": [{
        "id": "i-1", "name": "one", "status": "ACTIVE", "progress": 0,
        "OS-EXT-AZ:availability_zone": "az1",
        "flavor": {"original_name": "m1.tiny", "vcpus": 1},
        "addresses": {"a": [{"addr": "10.0.0.1", "version": 4}],
                      "b": [{"addr": "198.18.0.2", "OS-EXT-IPS:type": "floating"}]}
    }], "servers_links": []}"""

    assert tenant.parse(body) == (
        servers.Server(
            id="i-1",
            name="one",
            status="ACTIVE",
            zone="az1",
            flavor="m1.tiny",
            addresses=("10.0.0.1", "198.18.0.2"),
        ),
    )


def test_a_server_that_is_still_being_made_has_neither_zone_nor_address() -> None:
    body = b"""{"servers": [{"id": "i-1", "name": "one", "status": "BUILD",
        "OS-EXT-AZ:availability_zone": null, "addresses": {}, "flavor": {}}]}"""

    assert tenant.parse(body) == (servers.Server("i-1", "one", "BUILD"),)


def test_a_server_that_failed_has_the_reason() -> None:
    body = b"""{"servers": [{"id": "i-1", "name": "one", "status": "ERROR",
        "fault": {"code": 500, "message": "No valid host was found.",
                  "created": "2026-01-01T00:00:00Z"}}]}"""

    assert tenant.parse(body) == (
        servers.Server("i-1", "one", "ERROR", fault="No valid host was found."),
    )
