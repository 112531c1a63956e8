"""How long the steps of earlier starts took, and what this start therefore still takes.

Starts are compared with starts of the same kind only, such as the first one without any
data: the others take much less.
"""

import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence

from lib.lab.run import steps as lab_steps

Durations = Mapping[str, float]
"""Seconds by the name of a step."""


def read(file: pathlib.Path, kind: str) -> Durations:
    """Return the durations of the last start of a kind; empty when there is none."""
    return _all(file).get(kind, {})


def write(file: pathlib.Path, kind: str, durations: Durations) -> None:
    """Keep the durations of a start that is complete.

    A file that cannot be written is ignored: only the estimate is missing then.
    """
    whole = {**_all(file), kind: dict(durations)}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with open(handle, "w") as out:
            json.dump(whole, out, indent=1)
        os.replace(part, file)


def _all(file: pathlib.Path) -> Mapping[str, Durations]:
    try:
        whole = json.loads(file.read_text())
        return {
            str(kind): {str(name): float(took) for name, took in durations.items()}
            for kind, durations in whole.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # no earlier start, or a file that is damaged


def remaining_s(
    steps: Sequence[lab_steps.StartStep],
    last: Durations,
    elapsed: Durations,
    done: frozenset[str],
) -> float | None:
    """Return the seconds until all steps are done; None if one has no earlier duration.

    last: of the last start. elapsed: since the beginning of those that have begun. The
    steps that remain end one after the other along the longest chain of needs.
    """
    open_steps = {step.name: step for step in steps if step.name not in done}
    if not open_steps.keys() <= last.keys():
        return None
    ends: dict[str, float] = {}

    def end(name: str) -> float:
        if name not in ends:
            needs = [end(need) for need in open_steps[name].needs if need in open_steps]
            own = max(last[name] - elapsed.get(name, 0.0), 0.0)
            ends[name] = max(needs, default=0.0) + own
        return ends[name]

    return max(map(end, open_steps), default=0.0)
