"""Definitions of others' kinds are read from the modules that are pinned."""

import pathlib

from lib.lab.artifacts import go_modules
from tests.harness.kube import definitions

ANSWER = """go: downloading example.com/b v2.0.0
{
\t"Path": "example.com/a",
\t"Version": "v1.0.0",
\t"Dir": "/modules/example.com/a@v1.0.0"
}
{
\t"Path": "example.com/b",
\t"Dir": "/modules/example.com/b@v2.0.0"
}"""


def test_each_module_is_pinned_with_its_checksum() -> None:
    """Nothing is fetched that go.sum does not hold."""
    files = go_modules.files("definitions")
    pins = definitions.wanted(files["go.mod"].decode())
    assert {pin.partition("@")[0] for pin in pins} == set(definitions.FILES)
    sums = files["go.sum"].decode()
    for pin in pins:
        module, _, version = pin.partition("@")
        assert f"{module} {version} h1:" in sums


def test_modules_are_found_where_go_has_put_them() -> None:
    """Other lines of the output are ignored."""
    assert definitions.folders(ANSWER) == {
        "example.com/a": pathlib.Path("/modules/example.com/a@v1.0.0"),
        "example.com/b": pathlib.Path("/modules/example.com/b@v2.0.0"),
    }
    assert definitions.folders("") == {}
