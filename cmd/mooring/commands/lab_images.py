"""`mooring lab image`: the images of components, built in a checkout."""

import pathlib
import sys

import click

from mooring.commands import edge, paths


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--pex-folder", type=paths.FOLDER, help="Folder with the PEX files to contain."
)
@click.option(
    "--output",
    type=paths.NEW_FOLDER,
    default="dist/images",
    help="Where layouts and archives are written.",
)
@click.option(
    "--push",
    metavar="REGISTRY",
    default="",
    help="Registry and path to push to, with the credentials of docker login.",
)
@click.option(
    "--update-packages",
    is_flag=True,
    help="Pin the present versions of the Debian packages; builds nothing.",
)
def image(
    names: tuple[str, ...],
    pex_folder: pathlib.Path | None,
    output: pathlib.Path,
    push: str,
    update_packages: bool,
) -> None:
    """Build images of components (default: all).

    OCI layouts and archives, each with a bill of materials.

    Example: mooring lab image openstack-ccm
    """
    with edge.plainly():
        if update_packages:
            click.echo(_update())
        else:
            click.echo(_build(names, pex_folder, output, push))


def _root() -> pathlib.Path:
    from lib.lab import errors

    root = edge.checkout()
    if root is None:
        raise errors.LabError("not in a checkout: images are built from its sources")
    return root


def _update() -> str:
    from lib.lab.images import description, package_lock

    root, where = _root(), edge.where()
    with edge.display() as shown, shown.step("Read the package lists"):
        names = description.packages(root)
        before = set(package_lock.read_if_any(root).values())
        pins = package_lock.resolve(names, where)
        package_lock.write(root, pins)
    changed = sorted(set(pins) - before)
    lines = [f"{pin.name} {pin.version}" for pin in changed]
    return "\n".join([*lines, f"{len(changed)} of {len(pins)} packages have changed."])


def _build(
    names: tuple[str, ...],
    pex_folder: pathlib.Path | None,
    output: pathlib.Path,
    registry: str,
) -> str:
    from lib.lab.artifacts import pexes
    from lib.lab.images import description, images, publishing, sizes

    root, where = _root(), edge.where()
    chosen = names or description.names(root)
    components = sorted({description.read(root, name).pex for name in chosen})
    folder = pex_folder or pathlib.Path(sys.argv[0]).absolute().parent
    with edge.display() as shown:
        # A file of --pex-folder may be of another commit.
        sources = None if pex_folder else root
        pexes.bring(where, sources, folder, shown, components)
        source = images.ImageSource(
            root,
            {name: pexes.path(where, name) for name in components},
            images.commit_of(root) if sources else "",
            images.created_of(root) if sources else "",
        )
        built = images.build(where, source, chosen, output, shown)
        if registry:
            publishing.build(where, shown)
            with shown.step(f"Push to {registry}"):
                lines = [publishing.push(where, image, registry) for image in built]
        else:
            lines = [f"{image.file}: {image.reference}" for image in built]
    return "\n".join([sizes.table(built), *lines])
