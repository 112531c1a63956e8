"""Lines of code are counted without docstrings, imports and blank lines."""

from tests.harness.structure import code_lines


def test_lines_are_counted_without_docstrings_and_imports() -> None:
    text = '"""One.\n\nTwo."""\n\nimport os\n\n\ndef one() -> str:\n    """Do."""\n'
    assert code_lines.count(text + "    return os.name\n") == 2
