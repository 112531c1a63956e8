"""`mooring completion`: scripts that complete commands, options and values."""

import click
from click import shell_completion

from mooring.commands import program

SHELLS = {
    "bash": shell_completion.BashComplete,
    "zsh": shell_completion.ZshComplete,
    "fish": shell_completion.FishComplete,
}


@click.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes this command in a shell.

    \b
    bash:  source <(mooring completion bash)
    zsh:   source <(mooring completion zsh)
    fish:  mooring completion fish | source
    """
    commands = ctx.find_root().command
    script = SHELLS[shell](commands, {}, program.NAME, program.COMPLETE_VARIABLE)
    # The method of BashComplete would start bash to read its version.
    click.echo(script.source_template % script.source_vars())
