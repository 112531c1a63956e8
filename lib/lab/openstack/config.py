"""Renders every service's configuration; pure but for reading the templates."""

import dataclasses
import pathlib
import string
from collections.abc import Mapping

from lib.lab.openstack import layout, resources

FILES: Mapping[str, str] = {
    layout.KEYSTONE: "keystone.conf",
    layout.GLANCE: "glance-api.conf",
    layout.PLACEMENT: "placement.conf",
    layout.NOVA: "nova.conf",
    layout.NEUTRON: "neutron.conf",
    layout.CINDER: "cinder.conf",
    layout.OCTAVIA: "octavia.conf",
}
"""Configuration file by service."""


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What the configuration depends on.

    ports: by service, and "mariadb". share: the packages' own sample configuration
    (<venv>/etc).
    """

    ports: Mapping[str, int]
    data: pathlib.Path
    share: pathlib.Path


def database_url(ports: Mapping[str, int], name: str) -> str:
    """Return the address of a database, as SQLAlchemy takes it."""
    return f"mysql+pymysql://root@127.0.0.1:{ports['mariadb']}/{name}?charset=utf8"


def render(facts: Facts) -> Mapping[str, str]:
    """Return the text of each configuration file, by file name."""
    return {file: _service(facts, service) for service, file in FILES.items()}


def _service(facts: Facts, service: str) -> str:
    values = {
        "project": service,
        "password": layout.PASSWORD,
        "region": layout.REGION,
        "keystone_url": f"http://127.0.0.1:{facts.ports[layout.KEYSTONE]}",
        "glance_url": f"http://127.0.0.1:{facts.ports[layout.GLANCE]}",
        "port": str(facts.ports[service]),
        "database_url": database_url(facts.ports, service),
        "api_database_url": database_url(facts.ports, f"{service}_api"),
        "compute_host": layout.COMPUTE_HOSTS[0],
        "data": str(facts.data),
        "keys": str(facts.data / "keys"),
        "share": str(facts.share),
    }
    # Each of these may use the values before it.
    for shared in ("defaults", "credentials", "access"):
        values[shared] = _fill(f"{shared}.conf", values)
    return _fill(FILES[service], values)


@dataclasses.dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What MariaDB's configuration depends on.

    tree: the unpacked packages. messages, plugins: folders inside it.
    """

    tree: pathlib.Path
    messages: pathlib.Path
    plugins: pathlib.Path
    data: pathlib.Path
    port: int


def render_database(facts: DatabaseFacts) -> str:
    """Return the text of MariaDB's option file."""
    return _fill(
        "my.cnf",
        {
            "tree": str(facts.tree),
            "messages": str(facts.messages),
            "plugins": str(facts.plugins),
            "data": str(facts.data),
            "port": str(facts.port),
        },
    )


def _fill(template: str, values: Mapping[str, str]) -> str:
    text = resources.read(f"templates/{template}")
    return string.Template(text).substitute(values)
