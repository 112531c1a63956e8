"""Parses /proc/self/mountinfo.

os.path.ismount does not report a bind mount within one file system.
"""

import re

from lib.kernel.model import DeviceNumber, Mount

_ESCAPED = re.compile(r"\\([0-7]{3})")


def parse(text: str) -> tuple[Mount, ...]:
    """Return the mounts, in the file's order; malformed lines are skipped.

    Source: proc_pid_mountinfo(5); the kernel writes blanks as octal escapes.
    """
    parsed = (_mount(line) for line in text.splitlines())
    return tuple(mount for mount in parsed if mount is not None)


def _mount(line: str) -> Mount | None:
    head, _, tail = line.partition(" - ")
    fields, further = head.split(" "), tail.split(" ")
    if len(fields) < 6 or len(further) < 3:
        return None
    major, _, minor = fields[2].partition(":")
    return Mount(
        number=DeviceNumber(int(major), int(minor)),
        root=_unescaped(fields[3]),
        target=_unescaped(fields[4]),
        options=frozenset(fields[5].split(",")),
        fs_type=further[0],
        source=_unescaped(further[1]),
        super_options=frozenset(further[2].split(",")),
    )


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
