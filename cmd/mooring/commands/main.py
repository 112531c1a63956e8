"""mooring: command line tool for administrators."""

import click

from mooring.commands import doctor, lab, orphans, plan, render

VERSION = "0.1.0"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="mooring", message="%(prog)s %(version)s")
def commands() -> None:
    """Inspect, diagnose and demo Mooring components."""


commands.add_command(lab.lab)
commands.add_command(plan.plan)
commands.add_command(doctor.doctor)
commands.add_command(orphans.orphans)
commands.add_command(render.render)


def main() -> None:
    """Run the command line."""
    commands(prog_name="mooring")


if __name__ == "__main__":
    main()
