"""Files without a disk: the configuration of a Secret, for code that reads paths.

Source: Linux memfd_create(2): the file exists until this process ends, and no other
process has its path.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lib.doctor import deployed


def write(files: "deployed.CloudFiles") -> str:
    """Return the path of a configuration in memory.

    Files of the Secret that it names, such as a CA, are in memory, too, and their paths
    are replaced.
    """
    content = files.content
    # The longest path first: it may contain a shorter one.
    for path in sorted(files.files, key=len, reverse=True):
        if path.encode() in content:
            copy = _in_memory(files.files[path])
            content = content.replace(path.encode(), copy.encode())
    return _in_memory(content)


def _in_memory(content: bytes) -> str:
    descriptor = os.memfd_create("mooring")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return f"/proc/self/fd/{descriptor}"
