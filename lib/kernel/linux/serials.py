"""Serials of disks that must be asked for them, once each.

For virtio-blk the file "serial" is no text in memory: each read of it is a request to
the device, which waits in the kernel for as long as the device hangs, and no signal
ends it. A child process reads it, so that neither a caller nor the end of this process
waits for it.

Source: Linux drivers/block/virtio_blk.c (serial_show, virtblk_get_id).
"""

import dataclasses
import math
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Mapping

from lib.kernel import errors
from lib.kernel.linux import commands
from lib.kernel.model import DeviceNumber

Key = tuple[str, DeviceNumber, int]
"""Name, number and sequence: what no other disk ever has while the machine runs."""
ANSWER_S = 2.0
"""A disk that has not answered by then is silent."""
RETRY_S = 30.0
"""Between two questions to a disk that was silent, or could not be read."""
EXIT_S = 0.2
_READ = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
STRIPPED = " \0\n"


@dataclasses.dataclass(frozen=True, slots=True)
class SerialAnswer:
    """What a disk answered. until: when it is asked again."""

    serial: str = ""
    is_silent: bool = False
    until: float = math.inf


SILENT = SerialAnswer(is_silent=True)


class Serials:
    """Answers of the disks that are present. Safe for many threads."""

    def __init__(
        self,
        runner: commands.Commands | None = None,
        answer_s: float = ANSWER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runner = runner or commands.Commands({}, EXIT_S)
        self._answer_s = answer_s
        self._clock = clock
        self._changed = threading.Condition()
        self._answers: dict[Key, SerialAnswer] = {}
        self._asked: set[Key] = set()

    def of(self, files: Mapping[Key, pathlib.Path]) -> Mapping[Key, SerialAnswer]:
        """Return the answer of each disk; ask those that have not answered yet.

        files: of all present disks. All are asked at the same time: one that hangs
        delays the first caller by `answer_s`.
        """
        with self._changed:
            kept = set(files) | self._asked
            self._answers = {k: a for k, a in self._answers.items() if k in kept}
            for key in files:
                if self._is_due(key):
                    self._asked.add(key)
                    self._ask(key, files[key])
            until = self._clock() + self._answer_s + EXIT_S
            while self._asked & set(files) and self._clock() < until:
                self._changed.wait(until - self._clock())
            return {key: self._answers.get(key, SILENT) for key in files}

    def known(self, files: Mapping[Key, pathlib.Path]) -> Mapping[Key, SerialAnswer]:
        """Return what the disks have answered before, without a question."""
        with self._changed:
            return {key: self._answers.get(key, SerialAnswer()) for key in files}

    def _is_due(self, key: Key) -> bool:
        answer = self._answers.get(key)
        is_known = answer is not None and self._clock() < answer.until
        return key not in self._asked and not is_known

    def _ask(self, key: Key, file: pathlib.Path) -> None:
        threading.Thread(
            target=self._read, args=(key, file), daemon=True, name=f"serial {file}"
        ).start()

    def _read(self, key: Key, file: pathlib.Path) -> None:
        answer = self._answer(file)
        with self._changed:
            self._answers[key] = answer
            self._asked.discard(key)
            self._changed.notify_all()

    def _answer(self, file: pathlib.Path) -> SerialAnswer:
        words = [sys.executable, "-I", "-S", "-c", _READ, str(file)]
        try:
            finished = self._runner.run(words, str(file), self._answer_s)
        except errors.KernelError:
            return dataclasses.replace(SILENT, until=self._clock() + RETRY_S)
        if finished.code != 0:
            return SerialAnswer(until=self._clock() + RETRY_S)
        return SerialAnswer(finished.output.strip(STRIPPED))
