"""Files that `mooring render` reads, and documents that it prints, for every cloud."""

import contextlib
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from mooring.commands import outputs

Documents = Sequence[Mapping[str, object]]


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """Print all problems of the input, one line each, and exit with code 1."""
    from lib.process import config

    try:
        yield
    except config.ConfigError as error:
        count = len(error.problems)
        click.echo("1 problem:" if count == 1 else f"{count} problems:", err=True)
        click.echo(str(error), err=True)
        sys.exit(1)


def documents(files: Iterable[pathlib.Path]) -> list[object]:
    """Read the documents of files.

    Raises:
        ConfigError: one can't be read.
    """
    from lib.process import config, yaml_documents

    return [
        document
        for file in files
        for document in yaml_documents.read(str(file), config.read_text(str(file)))
    ]


def refuse_unsafe(changes: Sequence[object]) -> None:
    """Refuse a configuration whose changes are unsafe.

    Raises:
        ConfigError: there are changes.
    """
    from lib.process import config

    if changes:
        raise config.ConfigError([f"unsafe: {change}" for change in changes])


def note_skipped(kinds: Iterable[str]) -> None:
    """Print the kinds of documents that no document here uses to standard error."""
    for kind in kinds:
        click.echo(f"{kind}: ignored: no document here uses it.", err=True)


def show(parts: Sequence[Documents], output: str) -> None:
    """Print YAML documents; or one List, names or a table. parts: printed in order."""
    from lib.discovery import yaml_text

    if output != outputs.YAML:
        _show_objects([item for part in parts for item in part], output)
        return
    for part in parts:
        if part:
            click.echo("---\n" + yaml_text.dump(*part), nl=False)


def _show_objects(objects: Documents, output: str) -> None:
    """Print the objects as a List, as names or as a table."""
    rows = [_identity(document) for document in objects]
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    names = [outputs.name(*row) for row in rows]
    if not outputs.document(output, document, names):
        columns = tuple(map(outputs.Column, ("Kind", "Namespace", "Name")))
        outputs.print_table(output, columns, rows)


def _identity(document: Mapping[str, object]) -> tuple[str, str, str]:
    """Return kind, namespace and name of an object; the values have no kind."""
    about = document.get("metadata")
    about = about if isinstance(about, dict) else {}
    kind = str(document.get("kind", "values"))
    return kind, str(about.get("namespace", "")), str(about.get("name", ""))
