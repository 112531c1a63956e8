"""mooring: command line tool for administrators."""

import os

import click

from mooring.commands import (
    adopt,
    completion,
    doctor,
    get,
    helping,
    lab,
    layouts,
    migration,
    orphans,
    plan,
    program,
    render,
    version,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    version.VERSION,
    "-V",
    "--version",
    prog_name=program.NAME,
    message="%(prog)s %(version)s",
)
def commands() -> None:
    """Inspect, diagnose and demo Mooring components."""


commands.add_command(adopt.adopt)
commands.add_command(lab.lab)
commands.add_command(plan.plan)
commands.add_command(doctor.doctor)
commands.add_command(get.get)
commands.add_command(helping.show_help)
commands.add_command(layouts.layouts)
commands.add_command(migration.migrate)
commands.add_command(orphans.orphans)
commands.add_command(render.render)
commands.add_command(version.version)
commands.add_command(completion.completion)


def main() -> None:
    """Run the command line."""
    commands(
        prog_name=program.name(),
        complete_var=program.COMPLETE_VARIABLE,
        color=False if os.environ.get("NO_COLOR") else None,
    )


if __name__ == "__main__":
    main()
