"""Makes the tables: every project's own migrations, two projects at a time."""

import functools
import os
from collections.abc import Callable, Mapping

from lib.lab.artifacts import commands
from lib.lab.openstack import config, database, install, layout, parallel
from lib.lab.run import progress

AT_ONCE = 2


def run(home: layout.Layout, step: progress.ProgressStep) -> None:
    """Make every database's tables; what was done before is not done again.

    Raises:
        LabError: a migration failed; carries the end of its output.
    """
    tool = _Tool(home)
    jobs = [functools.partial(_once, tool, service) for service in _PROJECTS]
    parallel.run(jobs, AT_ONCE, lambda done: step.advance(done, len(jobs)))


def _once(tool: "_Tool", service: str) -> None:
    """Migrate one project, from an empty database: half a migration can't go on."""
    done = tool.home.data / "migrated" / service
    if done.exists():
        return
    database.clear(tool.home, _DATABASES.get(service, (service,)))
    _PROJECTS[service](tool)
    done.parent.mkdir(exist_ok=True)
    done.touch()


class _Tool:
    """Runs the management programs that came with the packages."""

    def __init__(self, home: layout.Layout) -> None:
        self.home = home

    def __call__(
        self, service: str, program: str, *arguments: str, secret: str = ""
    ) -> tuple[str, ...]:
        """Run one with its service's configuration; give the lines of its output.

        secret: a password for it, passed in the environment.
        """
        env = install.clean(os.environ)
        if secret:
            env["OS_BOOTSTRAP_PASSWORD"] = secret
        lines: list[str] = []
        file = self.home.etc / config.FILES[service]
        tool = self.home.install.program(program)
        commands.run(
            [
                *(self.home.install.python, "-W", "ignore"),
                *(tool, "--config-file", file),
                *arguments,
            ],
            failure=f"{program} {' '.join(arguments[:2])} failed",
            env=env,
            on_line=lines.append,
        )
        return tuple(lines)


def _keystone(tool: _Tool) -> None:
    service, program = layout.KEYSTONE, "keystone-manage"
    tool(service, program, "db_sync")
    # Without all three addresses every service's token check fails.
    url = tool.home.url(layout.KEYSTONE, "/v3/")
    addresses = [
        word
        for interface in ("public", "internal", "admin")
        for word in (f"--bootstrap-{interface}-url", url)
    ]
    region = ("--bootstrap-region-id", layout.REGION)
    tool(service, program, "bootstrap", *addresses, *region, secret=layout.PASSWORD)


def _nova(tool: _Tool) -> None:
    service, program = layout.NOVA, "nova-manage"
    ports = layout.ports(tool.home.where)
    tool(service, program, "api_db", "sync")
    cell0 = config.database_url(ports, "nova_cell0")
    tool(service, program, "cell_v2", "map_cell0", "--database_connection", cell0)
    tool(service, program, "db", "sync")
    cell1 = config.database_url(ports, "nova")
    tool(
        service,
        program,
        *("cell_v2", "create_cell", "--name", "cell1"),
        *("--database_connection", cell1, "--transport-url", "fake://"),
    )


def _neutron(tool: _Tool) -> None:
    tool(layout.NEUTRON, "neutron-db-manage", "upgrade", "heads")


def _cinder(tool: _Tool) -> None:
    tool(layout.CINDER, "cinder-manage", "db", "sync")


def _glance(tool: _Tool) -> None:
    tool(layout.GLANCE, "glance-manage", "db_sync")


def _placement(tool: _Tool) -> None:
    tool(layout.PLACEMENT, "placement-manage", "db", "sync")


def _octavia(tool: _Tool) -> None:
    tool(layout.OCTAVIA, "octavia-db-manage", "upgrade", "head")


_PROJECTS: Mapping[str, Callable[[_Tool], None]] = {
    layout.KEYSTONE: _keystone,
    layout.NOVA: _nova,
    layout.NEUTRON: _neutron,
    layout.GLANCE: _glance,
    layout.CINDER: _cinder,
    layout.PLACEMENT: _placement,
    layout.OCTAVIA: _octavia,
}
"""How each project's tables are made; the longest first."""
_DATABASES = {layout.NOVA: ("nova", "nova_api", "nova_cell0")}
"""Databases of the projects that have others than one of their own name."""
