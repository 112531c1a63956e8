"""`mooring help`: the same as `--help` of a command."""

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def show_help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command.

    Example: mooring help plan services
    """
    context = ctx.find_root()
    for word in words:
        group = context.command
        command = (
            group.get_command(context, word) if isinstance(group, click.Group) else None
        )
        if command is None:
            raise click.UsageError(f"No such command '{word}'.", context)
        context = click.Context(command, parent=context, info_name=word)
    click.echo(context.get_help())
