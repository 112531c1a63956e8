"""Commands of the tool in each form of output: terminals, a pipe, NO_COLOR, JSON.

A command runs in a child of this process, on a terminal of its own.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence

import click

from mooring.commands import main

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STYLED = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38|48)[0-9;]*m")
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_FRAME = "─│┌┐└┘━┃"
USAGE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How a command is run. width: of its terminal; 0: its output is a pipe.

    words: added to its arguments. env: added to its environment.
    """

    width: int = 0
    words: Sequence[str] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)


FORMS: Mapping[str, Form] = {
    "terminal 80": Form(80),
    "terminal 200": Form(200),
    "pipe": Form(),
    "NO_COLOR": Form(200, env={"NO_COLOR": "1"}),
    "-o json": Form(words=("-o", "json")),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def plain(self) -> str:
        """What was printed to standard output, without sequences of a terminal."""
        return _ESCAPE.sub("", self.out).replace("\r\n", "\n")


def leaves(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that has no commands below it, by its words."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from leaves(below, *path, name)
    else:
        yield " ".join(path), command


def has_documents(command: click.Command) -> bool:
    """Report whether a command has the option `-o`."""
    return any("-o" in option.opts for option in command.params)


def run(words: Sequence[str], form: Form, env: Mapping[str, str]) -> Output:
    """Run a command in a child of this process. env: of its user, with HOME."""
    with contextlib.ExitStack() as ends:
        opened = [_channel(form.width) for _ in range(2)]
        for reading, _ in opened:
            ends.callback(os.close, reading)
        child = os.fork()
        if child == 0:
            _become(words, form, env, [writing for _, writing in opened])
        for _, writing in opened:
            os.close(writing)
        texts = _read([reading for reading, _ in opened])
        _, status = os.waitpid(child, 0)
    return Output(os.waitstatus_to_exitcode(status), *texts)


def _channel(width: int) -> tuple[int, int]:
    """Return the ends of a terminal, or of a pipe without a width."""
    if not width:
        return os.pipe()
    reading, writing = pty.openpty()
    size = struct.pack("HHHH", 50, width, 0, 0)
    fcntl.ioctl(writing, termios.TIOCSWINSZ, size)
    return reading, writing


def _become(
    words: Sequence[str], form: Form, env: Mapping[str, str], outputs: Sequence[int]
) -> None:
    """Run the command in place of this process."""
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, writing in zip((1, 2), outputs, strict=True):
            os.dup2(writing, number)
        sys.stdin = os.fdopen(0)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        os.environ.clear()
        usual = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}
        os.environ.update({**usual, **env, **form.env})
        os.chdir(env["HOME"])
        try:
            sys.argv = ["mooring", *words, *form.words]
            main.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # - the parent prints it
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _read(channels: Sequence[int]) -> list[str]:
    """Read until all writers have ended."""
    pieces: dict[int, bytes] = dict.fromkeys(channels, b"")
    open_ = set(channels)
    while open_:
        for channel in select.select(list(open_), [], [])[0]:
            piece = b""
            with contextlib.suppress(OSError):  # the last writer of a terminal ended
                piece = os.read(channel, 1 << 16)
            pieces[channel] += piece
            if not piece:
                open_.discard(channel)
    return [pieces[channel].decode() for channel in channels]


def problems(
    command: click.Command, runs: Callable[[Form], Output], changing: bool = False
) -> dict[str, str]:
    """Return what is wrong with each form of a command's output, by form.

    runs: runs it in a form. changing: its exit code and rows may differ each time.
    """
    outputs = {name: runs(form) for name, form in FORMS.items()}
    pipe, document = outputs["pipe"], outputs["-o json"]
    texts = {name: "" for name in FORMS}
    ids = set(_ID.findall(pipe.plain))
    for name, output in outputs.items():
        if "Traceback" in output.err + output.out:
            texts[name] = "a traceback"
        elif name != "-o json" and not changing and output.code != pipe.code:
            texts[name] = f"exit code {output.code}, in a pipe {pipe.code}"
    for name in ("terminal 200", "NO_COLOR"):
        if not changing and (lost := ids - set(_ID.findall(outputs[name].plain))):
            texts[name] = texts[name] or f"IDs are missing or broken: {sorted(lost)}"
    narrow = outputs["terminal 80"].plain
    if not changing and ids - set(_ID.findall(narrow)) and _halved(narrow, ids):
        texts["terminal 80"] = "an ID is broken"
    if _COLOUR.search(pipe.out + pipe.err):
        texts["pipe"] = texts["pipe"] or "colours"
    elif any(sign in pipe.out for sign in _FRAME):
        texts["pipe"] = texts["pipe"] or "a frame"
    if _STYLED.search(outputs["NO_COLOR"].out + outputs["NO_COLOR"].err):
        texts["NO_COLOR"] = texts["NO_COLOR"] or "colours"
    texts["-o json"] = texts["-o json"] or _document(command, document)
    return {name: text for name, text in texts.items() if text}


def _halved(text: str, ids: set[str]) -> bool:
    """Report whether a line ends within an ID."""
    lines = [line.strip() for line in text.splitlines()]
    return any(
        line.endswith(id_[:cut]) for line in lines for id_ in ids for cut in (24, 30)
    )


def _document(command: click.Command, output: Output) -> str:
    """Return what is wrong with a JSON document; empty: it is one object."""
    if not has_documents(command):
        is_refused = output.code == USAGE and "No such option" in output.err
        return "" if is_refused else f"-o is not refused: exit code {output.code}"
    if not output.out.strip():
        return "" if output.err.strip() else "neither a document nor an error"
    try:
        value = json.loads(output.out)
    except ValueError as error:
        return f"no JSON: {error}"
    return "" if isinstance(value, dict) else f"no object but {type(value).__name__}"
