"""`mooring lab`: a local cluster, a local cloud, and openstack-ccm between them.

Slow imports are inside the commands, so that `--help` is fast.
"""

import dataclasses
import pathlib
import sys
from typing import TYPE_CHECKING

import click
import rich.console

from mooring.commands import (
    edge,
    lab_clients,
    lab_images,
    lab_openstack,
    lab_osdpl,
    lab_server,
    lab_zvirt,
    outputs,
    paths,
    providers,
)

if TYPE_CHECKING:
    from lib.lab.whole import parts, start_steps


LOG = "lab.log"
"""Of `up` and `build`: all steps, with the output of builds."""


@click.group()
def lab() -> None:
    """Run a real Kubernetes and a real OpenStack on this machine.

    With openstack-ccm, csi-controller and cloud-data-discoverer between them.

    Example: mooring lab up
    """


lab.add_command(lab_server.server)
lab.add_command(lab_server.simulated_kubelets)
lab.add_command(lab_server.storage_node)
lab.add_command(lab_server.pod_node)
lab.add_command(lab_osdpl.osdpl)
lab.add_command(lab_images.image)
for client in (lab_clients.env, lab_clients.kubectl, lab_clients.logs):
    lab.add_command(client)
lab.add_command(lab_openstack.openstack)
lab.add_command(lab_zvirt.zvirt)


@lab.command()
@click.option("--kubeconfig", type=paths.FILE, help="Use this cluster, start none.")
@providers.existing_options
@click.option("--flavor", default="", help="Flavor of the servers (default: smallest).")
@click.option("--image", default="", help="Image of the servers (default: first).")
@click.option("--network", default="", help="Network of the servers (default: first).")
@click.option("--node", is_flag=True, help="Add a real kubelet, with volumes.")
@click.option(
    "--charts",
    is_flag=True,
    help="Run the daemons in pods of that node, from their chart and images.",
)
@click.option(
    "--image-folder",
    type=paths.FOLDER,
    help="Folder with the images of --charts (default: dist/images).",
)
@click.option(
    "--components",
    metavar="NAME[,NAME]...",
    help="Mooring's daemons that run (default: all that the lab supports).",
)
@click.option(
    "--pex-folder", type=paths.FOLDER, help="Folder with the PEX files to run."
)
def up(  # noqa: PLR0913 - one argument for each option
    kubeconfig: pathlib.Path | None,
    flavor: str,
    image: str,
    network: str,
    node: bool,
    charts: bool,
    image_folder: pathlib.Path | None,
    components: str | None,
    pex_folder: pathlib.Path | None,
    cloud: str,
    **existing: str,
) -> None:
    """Start the lab; may be repeated.

    The first start compiles programs: 10 to 35 minutes on two cores, 10 GB in ~/.cache.
    MOORING_LAB_PROGRAMS, an archive of a release, saves that. Ctrl-C is safe: the next
    `lab up` continues. Later starts take a minute.
    """
    where = edge.where()
    with edge.plainly():
        from lib.lab.grounds import servers
        from lib.lab.run import checkpoint
        from lib.lab.whole import parts, record, whole
        from mooring.commands import lab_show

        provider, place = providers.chosen(cloud, existing)
        settings = record.Record(
            kubeconfig=str(kubeconfig.absolute()) if kubeconfig else "",
            provider=provider.name,
            existing_cloud=place.name,
            existing_file=place.file,
            kind=servers.Kind(flavor, image, network),
            node=node or charts,
            charts=charts,
            images=_images(image_folder) if charts else "",
        )
        started = _with(parts.Lab(where, settings, provider.grounds()), components)
        before = checkpoint.take(where)
        if text := whole.first_start(started):
            click.echo(text, err=True)
        try:
            with edge.display(where.log / LOG) as shown:
                started = whole.up(started, _sources(pex_folder), shown)
            lab_show.settle(started)
        except KeyboardInterrupt:
            before.halt()
            raise
        lab_show.look_around(started)


@lab.command()
@click.option(
    "--pex-folder", type=paths.FOLDER, help="Folder with the PEX files to run."
)
@providers.option
@click.option("--node", is_flag=True, help="Also the programs of a real kubelet.")
@click.option("--charts", is_flag=True, help="Also what `lab up --charts` requires.")
@click.option(
    "--image-folder",
    type=paths.FOLDER,
    help="Folder with the images of --charts (default: dist/images).",
)
@click.option("--tests", is_flag=True, help="Also programs that only tests use.")
@click.option(
    "--archive",
    type=paths.NEW_FILE,
    help="Write the built programs to this file, for MOORING_LAB_PROGRAMS.",
)
def build(  # noqa: PLR0913 - one argument for each option
    pex_folder: pathlib.Path | None,
    cloud: str,
    node: bool,
    charts: bool,
    image_folder: pathlib.Path | None,
    tests: bool,
    archive: pathlib.Path | None,
) -> None:
    """Build and cache all programs without starting them.

    Example: mooring lab build --charts --archive lab-programs.tar.gz
    """
    where = edge.where()
    with edge.plainly(), edge.display(where.log / LOG) as shown:
        from lib.lab.artifacts import go_modules, program_archive
        from lib.lab.whole import parts, record, whole

        more = go_modules.GROUPS if tests else ()
        provider = providers.of(cloud)
        settings = record.Record(
            provider=provider.name,
            node=node or tests or charts,
            charts=charts,
            images=_images(image_folder) if charts else "",
        )
        lab = parts.Lab(where, settings, provider.grounds())
        whole.build(lab, _sources(pex_folder), shown, more)
        if archive is not None:
            with shown.step(f"Write {archive}"):
                program_archive.pack(where, whole.program_folders(where), archive)


@lab.command()
@click.option(
    "--package",
    "target",
    type=paths.NEW_FOLDER,
    help="Write the packages of all charts to this folder, and no snapshot.",
)
@click.option("--sign-key", default="", help="With --package: name of a key of PGP.")
@click.option("--keyring", type=paths.FILE, help="File with that key.")
def charts(
    target: pathlib.Path | None, sign_key: str, keyring: pathlib.Path | None
) -> None:
    """Render the snapshots of the charts in a checkout.

    With the real helm; a test compares them.

    Example: mooring lab charts --package dist/charts
    """
    where = edge.where()
    with edge.plainly(), edge.display() as shown:
        from lib.lab import errors
        from lib.lab.artifacts import programs
        from lib.lab.charts import charts, helm, packaging, rewriting

        root = edge.checkout()
        if root is None:
            raise errors.LabError(
                "not in a checkout: the charts are rendered from its sources"
            )
        programs.build(where, [helm.GROUP], shown)
        if target is not None:
            signed = packaging.Signing(sign_key, keyring) if keyring else None
            for package in packaging.package(where, root, target, signed):
                click.echo(package)
            return
        changed = rewriting.rewrite(where, root)
    for file in changed:
        click.echo(file.relative_to(root))
    click.echo(f"{len(changed)} of {len(charts.SNAPSHOTS)} snapshots have changed.")


@lab.command()
@outputs.option
def status(output: str) -> None:
    """Show programs, Nodes and servers of the lab.

    Exit code 1 if something does not run.
    """
    where = edge.where()
    with edge.plainly():
        from mooring.commands import lab_status

        good = lab_status.show(where, output)
    sys.exit(0 if good else 1)


@lab.command()
def demo() -> None:
    """Show what the daemons do with servers and volumes.

    Servers and routes; with --node the life of a volume, too.
    """
    where = edge.where()
    with edge.plainly():
        from mooring.commands import lab_show

        good = lab_show.demo(where)
    sys.exit(0 if good else 1)


@lab.command()
@click.option("--wipe", is_flag=True, help="Remove data, certificates and logs, too.")
@click.option("--tests", is_flag=True, help="End the labs that tests keep up, instead.")
def down(wipe: bool, tests: bool) -> None:
    """Stop the lab; its data and the built programs are kept."""
    where = edge.where()
    with edge.plainly(), edge.display() as shown:
        from lib.lab.slots import leases
        from lib.lab.whole import whole
        from mooring.commands import lab_show

        if tests:
            with shown.step("End the labs of tests"):
                ended = leases.end_all()
        else:
            whole.down(where, lab_show.grounds(where), shown, wipe=wipe)
    for number, what in ended.items() if tests else ():
        click.echo(f"Test slot {number}: {what}.")


@lab.command()
@click.option("--yes", is_flag=True, help="Really remove them.")
def clean(yes: bool) -> None:
    """Show cache sizes; with --yes, remove the caches."""
    where = edge.where()
    with edge.plainly():
        from lib.lab import errors
        from lib.lab.artifacts import caches
        from lib.lab.run import processes
        from lib.lab.slots import leases
        from lib.lab.status import table

        outputs.show(rich.console.Console(), table.sizes(caches.sizes(where)))
        if not yes:
            click.echo(f"In {where.cache}. Add --yes to remove it all.")
            return
        if any(processes.find(where, name) for name in processes.names(where)):
            raise errors.LabError(
                f"the lab runs from these caches; `{edge.spoken()} lab down` first"
            )
        leases.end_all()
        if leases.in_use():
            raise errors.LabError("tests run from these caches; let them end first")
        caches.remove(where)
        click.echo("Removed.")


def _with(lab: "parts.Lab", components: str | None) -> "parts.Lab":
    """Return the lab with the components of a comma-separated list; None: as it is."""
    import msgspec

    if components is None:
        return lab
    chosen = tuple(name.strip() for name in components.split(","))
    for name in chosen:
        lab_clients.require_known("--components", name, lab.supported)
    record = msgspec.structs.replace(lab.record, components=chosen)
    return dataclasses.replace(lab, record=record)


def _images(folder: pathlib.Path | None) -> str:
    from lib.lab.pods import pod_images

    return str((folder or pathlib.Path(pod_images.FOLDER)).absolute())


def _sources(pex_folder: pathlib.Path | None) -> "start_steps.Sources":
    from lib.lab.whole import start_steps

    folder = pex_folder or pathlib.Path(sys.argv[0]).absolute().parent
    return start_steps.Sources(None if pex_folder else edge.checkout(), folder)
