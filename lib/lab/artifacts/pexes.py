"""The PEX files which a lab runs: components, and this tool itself."""

import filecmp
import os
import pathlib
import shutil
import sys
from collections.abc import Mapping, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import commands
from lib.lab.run import progress

TOOL = "mooring"
OSDPL = "osdpl-controller"


def address(component: str) -> str:
    """Return the target of a component, as `./pants package` takes it."""
    return f"cmd/{component.replace('-', '_')}:{component}"


def checkout_above(folder: pathlib.Path) -> pathlib.Path | None:
    """Return the checkout that `folder` is in, or None."""
    for above in (folder, *folder.parents):
        if (above / "pants.toml").is_file() and (above / "pants").is_file():
            return above
    return None


def path(where: places.Places, component: str) -> pathlib.Path:
    """Return the lab's own copy of a component's PEX."""
    return where.state / "bin" / f"{component}.pex"


def command(pex: pathlib.Path) -> tuple[str, ...]:
    """Return the arguments that run a PEX with the Python this program runs on.

    The interpreter below the current environment: that one does not go away when a
    build sandbox does.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    below = pathlib.Path(sys.base_prefix) / "bin" / version
    return (str(below) if below.exists() else sys.executable, str(pex))


def environment(where: places.Places) -> Mapping[str, str]:
    """Return what a PEX needs besides the caller's environment.

    The paths of the sandbox we may run in are emptied: they are about to vanish.
    """
    return {
        "PEX_ROOT": str(where.cache / "pex"),
        "PEX_EXTRA_SYS_PATH": "",
        "PEX_PATH": "",
        "PYTHONPATH": "",
    }


def require(
    checkout: pathlib.Path | None,
    folder: pathlib.Path,
    components: Sequence[str],
) -> None:
    """Make sure, before anything long begins, that `bring` will find the files.

    Raises:
        LabError: there is no checkout, and one is not in the folder.
    """
    if checkout is None:
        for component in components:
            _there(folder / f"{component}.pex")


def bring(
    where: places.Places,
    checkout: pathlib.Path | None,
    folder: pathlib.Path,
    shown: progress.Progress,
    components: Sequence[str],
) -> None:
    """Put the PEX files into the lab, packaged from the checkout or out of a folder.

    folder: where they lie when there is no checkout. components: which.

    Raises:
        LabError: packaging failed, or a file is not there.
    """
    with shown.step(f"Package {', '.join(components)}") as step:
        if checkout is not None:
            step.note("./pants package")
            addresses = [address(component) for component in components]
            package(where, checkout, step, addresses)
            folder = checkout / "dist"
        for component in components:
            _copy(_there(folder / f"{component}.pex"), path(where, component))


def package(
    where: places.Places,
    checkout: pathlib.Path,
    step: progress.ProgressStep,
    addresses: Sequence[str],
) -> None:
    """Run `./pants package` in a checkout; its output goes to package.log.

    Raises:
        LabError: it failed.
    """
    # Beside the Pants that may have started us, hence "concurrent" and no daemon.
    env = {**os.environ, "PANTS_CONCURRENT": "true"}
    for name in environment(where):
        env.pop(name, None)
    where.log.mkdir(parents=True, exist_ok=True)
    with (where.log / "package.log").open("w") as log:

        def show(line: str) -> None:
            log.write(f"{line}\n")
            log.flush()
            step.note(line)

        commands.run(
            ["./pants", "--no-pantsd", "--no-dynamic-ui", "package", *addresses],
            failure=f"./pants package {' '.join(addresses)} failed",
            env=env,
            cwd=checkout,
            on_line=show,
        )


def _there(source: pathlib.Path) -> pathlib.Path:
    if not source.is_file():
        raise errors.LabError(
            f"{source} is missing: run `./pants package ::` in a checkout first, or"
            " name the folder that contains it with --pex-folder"
        )
    return source


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    if target.is_file() and filecmp.cmp(source, target, shallow=False):
        return  # its time stays, so that nobody restarts what runs from it
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, part)
    part.replace(target)


def beside(component: str) -> pathlib.Path:
    """Return the PEX file that Pants put beside a test; in a checkout that of dist/.

    Raises:
        LabError: it has not been packaged.
    """
    here, name = pathlib.Path.cwd(), f"{component}.pex"
    packaged = here / "dist" / name
    return here / name if (here / name).is_file() else _there(packaged)
