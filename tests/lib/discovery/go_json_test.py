"""JSON that Go's readers compare byte by byte."""

import json

from lib.discovery import go_json


def test_json_is_written_as_go_writes_it() -> None:
    """Sorted, tight, and safe inside HTML, whatever reads it byte by byte."""
    written = go_json.dump({"b": "<&>\u2028", "a": "Ж"})
    assert written == '{"a":"Ж","b":"\\u003c\\u0026\\u003e\\u2028"}'
    assert json.loads(written) == {"b": "<&>\u2028", "a": "Ж"}
