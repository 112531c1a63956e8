"""Chart sources of the lab: an HTTP repository, a folder, an OCI registry."""

import pathlib
import sys

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.osdpl import chart_set
from lib.lab.run import ports, processes

REPOSITORY = "chart-repository"
REGISTRY = "chart-registry"
GROUP = "registry"


def folder(where: places.Places) -> pathlib.Path:
    """Return the folder that the HTTP repository serves."""
    return where.state / "chart-repository"


def serve_repository(where: places.Places) -> str:
    """Serve the lab's chart set over HTTP on loopback; return the address.

    Raises:
        LabError: the port is taken, or the server did not start.
    """
    chart_set.write_repository(folder(where), chart_set.pack_all())
    ports.require(where, [(REPOSITORY, REPOSITORY)])
    port = where.port(REPOSITORY)
    words = (
        *(sys.executable, "-u", "-m", "http.server", str(port)),
        *("--bind", ports.LOOPBACK, "--directory", folder(where)),
    )
    processes.start(where, REPOSITORY, words)
    processes.wait_for(where, REPOSITORY, lambda: not ports.free(port))
    return f"http://{ports.LOOPBACK}:{port}"


def write_folder(where: places.Places) -> str:
    """Write the lab's chart set as a checkout has it; return its path."""
    target = where.state / "chart-folder"
    chart_set.write(target)
    return str(target)


def serve_registry(where: places.Places) -> str:
    """Serve an OCI registry on loopback with the lab's chart set; return the address.

    Raises:
        LabError: it is not built, the port is taken, or helm could not push a chart.
    """
    program = programs.path(where, REGISTRY.removeprefix("chart-"))
    ports.require(where, [(REGISTRY, REGISTRY)])
    port = where.port(REGISTRY)
    blobs = where.state / "chart-registry"
    blobs.mkdir(parents=True, exist_ok=True)
    listen = f"-address={ports.LOOPBACK}:{port}"
    processes.start(where, REGISTRY, (program, listen, f"-folder={blobs}"))
    processes.wait_for(where, REGISTRY, lambda: not ports.free(port))
    address = f"oci://{ports.LOOPBACK}:{port}/charts"
    chart_set.write_repository(folder(where), chart_set.pack_all())
    for archive in sorted(folder(where).glob("*.tgz")):
        helm.run(where, ("push", archive, address, "--plain-http"))
    return address
