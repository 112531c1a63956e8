"""The users of the lab's cloud, and the files in which clients find that."""

import dataclasses
import pathlib

import yaml

from lib.lab import places
from lib.lab.kube import pki
from lib.lab.openstack import layout


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """A user in a project. cloud: its name in clouds.yaml.

    The password is the same for all: the cloud listens on loopback only.
    """

    cloud: str
    user: str
    project: str


DEMO = Account("mooring-lab", "demo", "demo")
"""A plain user."""
ADMIN = Account("mooring-lab-admin", "admin", "admin")
"""May do everything."""


def own(project: str) -> Account:
    """Return the account of a project made for one purpose: its user has its name."""
    return Account(f"mooring-lab-{project}", project, project)


def clouds_yaml(keystone_url: str, *accounts: Account) -> str:
    """Return the text of a clouds.yaml with some accounts.

    Source: openstacksdk, "Configuring OpenStack SDK Applications".
    """
    clouds = {
        account.cloud: {
            "auth": {
                "auth_url": keystone_url,
                "username": account.user,
                "password": layout.PASSWORD,
                "project_name": account.project,
                "user_domain_id": "default",
                "project_domain_id": "default",
            },
            "region_name": layout.REGION,
            "interface": "public",
            "identity_api_version": "3",
        }
        for account in accounts
    }
    return yaml.safe_dump({"clouds": clouds}, sort_keys=False)


def clouds_file(where: places.Places, *extra: Account) -> pathlib.Path:
    """Write the lab's clouds.yaml, readable by its owner only, and return its path.

    extra: accounts beside the two that every lab has.
    """
    home = layout.of(where)
    text = clouds_yaml(home.url(layout.KEYSTONE, "/v3"), DEMO, ADMIN, *extra)
    home.root.mkdir(parents=True, exist_ok=True)
    file = home.root / "clouds.yaml"
    pki.write_secret(file, text.encode())
    return file


def cloud_conf(
    where: places.Places, account: Account = DEMO, keystone_url: str = ""
) -> str:
    """Return the text of a cloud.conf with which openstack-ccm sees a project.

    keystone_url: another way in than the cloud's own.

    Source: cloud-provider-openstack, "openstack-cloud-controller-manager", [Global]
    and [Networking].
    """
    settings = {
        "auth-url": keystone_url or layout.of(where).url(layout.KEYSTONE, "/v3"),
        "username": account.user,
        "password": layout.PASSWORD,
        "region": layout.REGION,
        "tenant-name": account.project,
        "domain-id": "default",
    }
    lines = [f'{key} = "{value}"' for key, value in settings.items()]
    return "\n".join(
        ["[Global]", *lines, "", "[Networking]", 'public-network-name = "public"', ""]
    )
