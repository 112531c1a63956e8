"""The page of mooring has every command and option, each with a meaning."""

import click

from tests.reference import generate, sheets, tool


def shown_help(name: str) -> str:
    """Return the help of a command as click formats it."""
    command = dict(tool.commands())[name]
    return command.get_help(click.Context(command, info_name=name)) + "\n"


def test_each_command_and_option_has_a_meaning() -> None:
    """Prints command and option."""
    missing = []
    for name, command in tool.commands():
        shown = [(name, command.help)]
        shown += [(f"{name} {o.opts[-1]}", o.help) for o in tool.options(command)]
        print("\n".join(row for row, _ in shown))
        missing += [row for row, text in shown if not text]
    assert missing == []


def test_the_page_has_what_the_help_shows() -> None:
    """Each command, and each option by its long name, of `--help`."""
    sections = tool.tables()["commands"].split("## ")[1:]
    page = (generate.FOLDER / "mooring-flags.md").read_text()
    by_name = {section.partition("\n")[0]: section for section in sections}
    assert len(by_name) >= 30
    for name, section in by_name.items():
        assert f"## {section.strip()}\n" in page
        _, _, options = shown_help(name).partition("\nOptions:\n")
        options = options.partition("\nCommands:\n")[0]
        heads = [line[:60] for line in options.splitlines() if line[2:3] == "-"]
        for head in heads:
            long_name = head[head.index("--") :].split()[0]
            print(f"{name} {long_name}")
            assert long_name == "--help" or f"`{long_name}`" in section
        assert len(heads) == 1 + len(sheets.names(section))


def test_each_subcommand_has_a_section() -> None:
    """As `Commands:` of the help lists them."""
    names = {name for name, _ in tool.commands()}
    for name in names:
        rows = shown_help(name).partition("\nCommands:\n")[2].splitlines()
        children = {row.split()[0] for row in rows if row[2:3].strip()}
        assert {f"{name} {child}" for child in children} <= names
