"""Every block of README and docs is proven: run on the lab, parsed, or has a reason."""

import pathlib
import shlex
from collections import Counter

import click
import pytest
import yaml

from lib.cloud.openstack.config import reader
from mooring.commands import doctor, main
from tests.harness.docs import pages

REASONS_MAX = 10
ON_THE_LAB = ("kubectl", "helm", "mooring", "install")
CREDENTIALS = """[Global]
auth-url = http://keystone
region = R
application-credential-id = i
application-credential-secret = s
"""


def parsed(command: str) -> str:
    """Return the problem of a command line of `mooring`; empty: it is valid.

    `...` and brackets of a synopsis are removed. Nothing is carried out.
    """
    text = command.removeprefix("./pants run cmd/mooring -- ").removeprefix("mooring ")
    words = shlex.split(text.replace("[", " ").replace("]", " ").replace("...", " "))
    current: click.Command = main.commands
    context = click.Context(current, info_name="mooring")
    if words[:1] == ["doctor"] and words[1:2] != ["osdpl"]:
        words.insert(1, doctor.USUAL)
    while isinstance(current, click.Group) and words and words[0][0] != "-":
        subcommand = current.get_command(context, words[0])
        if subcommand is None:
            return f"no such command: {words[0]}"
        current, words = subcommand, words[1:]
        context = click.Context(current, parent=context)
    try:
        current.make_parser(context).parse_args(words)
    except click.UsageError as error:
        return error.format_message()
    return ""


def proof(block: pages.Block, command: str) -> str:
    """Return how a command is proven, or its problem after an exclamation mark."""
    if text := pages.reason(command):
        return f"reason: {text}"
    if command.startswith(("mooring ", "./pants run cmd/mooring -- ")):
        if problem := parsed(command):
            return f"! {problem}"
        is_run = pages.is_followed(block) and not command.startswith(pages.LAB)
        return "on the lab" if is_run else "parsed"
    if command.startswith(ON_THE_LAB) and pages.is_followed(block):
        return "on the lab"
    return "! no proof: add its page to FOLLOWED, or a reason"


def manifest(block: pages.Block) -> str:
    """Return the proof of a block that contains no commands."""
    match block.language:
        case "yaml":
            list(yaml.safe_load_all(block.text))
            return "parsed"
        case "ini":
            text = block.text
            has_credentials = "[Global]" in text
            reader.read(text if has_credentials else CREDENTIALS + text, {})
            return "read as cloud.conf"
        case "text":
            return "output"
    return f"! unknown language {block.language}"


def test_every_block_is_proven() -> None:
    """One line for each command and manifest."""
    problems, counts = [], Counter[str]()
    for page in pages.documents():
        for block in pages.blocks(page):
            rows = [(command, proof(block, command)) for command in block.commands()]
            if block.language:
                rows = [(block.text.splitlines()[0], manifest(block))]
            for text, how in rows:
                print(f"{page}:{block.line}: {text[:60]:60} {how}")
                counts[how.partition(":")[0]] += 1
                if how.startswith("!"):
                    problems.append(f"{page}:{block.line}: {text}: {how}")
    print(dict(counts))
    assert problems == []
    assert counts["on the lab"] >= 40


def test_reasons_are_few_and_used() -> None:
    commands = [
        command
        for page in pages.documents()
        for block in pages.blocks(page)
        if not block.language
        for command in block.commands()
    ]
    assert len(pages.REASONS) <= REASONS_MAX
    for beginning in pages.REASONS:
        assert any(command.startswith(beginning) for command in commands), beginning


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("mooring plan nodes --cloud-config FILE ...", ""),
        ("mooring plan nodes --no-such-flag", "No such option"),
        ("mooring no-such-command", "no such command"),
    ],
)
def test_a_wrong_command_is_reported(command: str, problem: str) -> None:
    assert problem in parsed(command)
    assert bool(parsed(command)) == bool(problem)


def test_a_command_without_proof_is_reported() -> None:
    page = pathlib.Path("docs/how-to/orphans.md")
    block = pages.Block(str(page), 1, "", "", "kubectl get nodes")
    assert proof(block, *block.commands()).startswith("! no proof")
