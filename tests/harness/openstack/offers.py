"""What an administrator offers to the users of load balancers: flavors and zones."""

import openstack.connection


def balancers(
    admin: openstack.connection.Connection, name: str, zone_name: str
) -> tuple[str, str]:
    """Have a flavor and an availability zone of Octavia's; return its ID and its name.

    What is there by name is used as it is: a lab serves one test process after another.
    """
    octavia = admin.load_balancer
    profile = octavia.find_flavor_profile(name) or octavia.create_flavor_profile(
        name=name, provider_name="amphora", flavor_data="{}"
    )
    flavor = octavia.find_flavor(name) or octavia.create_flavor(
        name=name, flavor_profile_id=profile.id
    )
    zones = octavia.find_availability_zone_profile(
        name
    ) or octavia.create_availability_zone_profile(
        name=name,
        provider_name="amphora",
        availability_zone_data='{"compute_zone": "az1"}',
    )
    zone = octavia.find_availability_zone(
        zone_name
    ) or octavia.create_availability_zone(
        name=zone_name, availability_zone_profile_id=zones.id
    )
    return str(flavor.id), str(zone.name)
