"""`mooring lab osdpl status`: programs of its lab, and releases of OpenStack."""

import rich.console

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.kube import cluster, control_plane
from lib.lab.osdpl import lab, view
from lib.lab.status import table
from mooring.commands import documents, edge, lab_status, outputs


def show(where: places.Places, output: str) -> bool:
    """Show the programs, then the releases; report whether everything is complete.

    output: one of `outputs.FORMATS`.

    Raises:
        LabError: no such lab was started here, or its releases cannot be read.
    """
    if not control_plane.admin_kubeconfig(where).exists():
        raise errors.LabError(
            f"there is no such lab; `{edge.spoken()} lab osdpl up` starts one"
        )
    programs = lab.status(where)
    console = rich.console.Console()
    if not outputs.is_document(output):
        outputs.show(console, table.programs(programs))
    try:
        observed = view.observe(cluster.connect(control_plane.admin_kubeconfig(where)))
    except kube_errors.KubeError as error:
        raise errors.LabError(f"cannot show the releases: {error}") from error
    document: documents.OsdplLabStatus = {
        "programs": lab_status.programs(where, programs),
        "releases": [_release(row) for row in observed.rows],
        "conditions": list(observed.conditions),
        "state": observed.state,
    }
    names = [outputs.name("program", row.name) for row in programs]
    names += [outputs.name("release", row.release) for row in observed.rows]
    if not outputs.document(output, document, names):
        is_whole = output == outputs.WIDE or not console.is_terminal
        width = view.WIDE if is_whole else console.width
        outputs.show(console, view.table(observed, width=width))
        for condition in observed.conditions:
            console.print(condition, markup=False)
    runs = all(each.health is table.Health.GOOD for each in programs)
    return runs and observed.is_complete


def _release(row: view.Row) -> documents.LabRelease:
    return {
        "release": row.release,
        "service": row.service,
        "chart": row.chart,
        "revision": row.revision,
        "state": row.state,
        "workloads_ready": row.ready,
        "workloads": len(row.workloads),
        "waiting_for": row.waiting_for,
    }
