"""Go's own template engine, with the functions that Helm gives it."""

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.run import progress

Job = dict[str, object]
Render = Callable[[Iterable[Job]], list[dict[str, str]]]


def engine(folder: pathlib.Path) -> Render:
    """Build the engine; return a function that renders jobs. folder: for its files."""
    place = places.Places(places.default().cache, folder)
    programs.build(place, ["templates"], progress.Lines(sys.stderr))
    program = programs.path(place, "go-templates")

    def run(jobs: Iterable[Job]) -> list[dict[str, str]]:
        result = subprocess.run(
            [program],
            input=json.dumps(list(jobs)),
            capture_output=True,
            text=True,
            check=True,
            timeout=900,
        )
        answers: list[dict[str, str]] = json.loads(result.stdout)
        return answers

    return run


def texts(answers: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the rendered texts; fail if there is an error among them."""
    assert [answer["error"] for answer in answers if answer["error"]] == []
    return [answer["text"] for answer in answers]
