"""A provider takes about 300 lines, and knows nothing of lib but the vocabulary."""

import ast
import pathlib

from tests.harness.structure import code_lines
from tests.third import cloud

FILES = ("balancers.py", "cloud.py", "volumes.py")
MOST = 300
"""Lines of code, see `code_lines.py`."""


def folder() -> pathlib.Path:
    return pathlib.Path(cloud.__file__).parent


def test_a_provider_is_about_300_lines() -> None:
    sizes = {file: code_lines.count((folder() / file).read_text()) for file in FILES}
    print(", ".join(f"{file}: {size}" for file, size in sizes.items()))
    assert 100 < sum(sizes.values()) <= MOST


def test_it_is_written_from_the_vocabulary_alone() -> None:
    """No flow, no runtime, no package of another provider."""
    allowed = ("lib.cloud", "tests.third.")
    forbidden = ("lib.cloud.openstack", "lib.cloud.fake", "lib.cloud.support")
    for file in FILES:
        for node in ast.walk(ast.parse((folder() / file).read_text())):
            name = node.module if isinstance(node, ast.ImportFrom) else ""
            if name and name.startswith(("lib.", "cmd.", "tests.")):
                assert name.startswith(allowed), (file, name)
                assert not name.startswith(forbidden), (file, name)


def test_lines_are_counted_without_docstrings_and_imports() -> None:
    text = '"""One.\n\nTwo."""\n\nimport os\n\n\ndef one() -> str:\n    """Do."""\n'
    assert code_lines.count(text + "    return os.name\n") == 2
