"""Which account the client of the lab uses."""

import pytest

from lib.lab.openstack import cloud_client

LAB = {"OS_CLOUD": "mooring-lab", "OS_CLIENT_CONFIG_FILE": "/lab/clouds.yaml"}


@pytest.mark.parametrize(
    ("env", "cloud"),
    [
        ({}, "mooring-lab"),
        ({"OS_CLOUD": "mooring-lab-admin"}, "mooring-lab-admin"),
        ({"OS_CLOUD": "mooring-lab"}, "mooring-lab"),
        ({"OS_CLOUD": "company"}, "mooring-lab"),
        ({"OS_CLOUD": ""}, "mooring-lab"),
    ],
    ids=[
        "the plain user by default",
        "the administrator if OS_CLOUD names it",
        "the plain user by its name",
        "a cloud that the lab does not have is ignored",
        "an empty variable is ignored",
    ],
)
def test_the_user_chooses_among_the_accounts_of_the_lab(
    env: dict[str, str], cloud: str
) -> None:
    chosen = cloud_client.chosen_account(LAB, env)
    assert chosen == {**LAB, "OS_CLOUD": cloud}
