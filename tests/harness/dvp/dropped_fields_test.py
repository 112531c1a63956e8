import json
import pathlib
from typing import Any

import pytest

from tests.harness.dvp import dropped_fields

CHILD = "system:serviceaccount:project:child"
ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all is kept": ({}, []),
    "a field is dropped": (
        {"requestObject": {"spec": {"a": 1, "wrong": 2}}},
        ["x/1: create virtualmachines: .spec.wrong"],
    ),
    "of a list": (
        {
            "requestObject": {"spec": {"rows": [{"wrong": 1}]}},
            "responseObject": {"spec": {"rows": [{}]}},
        },
        ["x/1: create virtualmachines: .spec.rows[0].wrong"],
    ),
    "null removes": ({"requestObject": {"spec": {"wrong": None}}}, []),
    "it was refused": (
        {"requestObject": {"spec": {"wrong": 2}}, "responseStatus": {"code": 422}},
        [],
    ),
    "of an administrator": (
        {"requestObject": {"spec": {"wrong": 2}}, "user": {"username": "admin"}},
        [],
    ),
    "a status of the simulator": (
        {
            "requestObject": {"status": {"wrong": 2}},
            "objectRef": {"resource": "virtualmachines", "subresource": "status"},
            "user": {"username": "admin"},
        },
        ["x/1: create virtualmachines: .status.wrong"],
    ),
}


@pytest.mark.parametrize("title", ROWS)
def test_fields_that_were_dropped_are_named(title: str, tmp_path: pathlib.Path) -> None:
    """Once, although the request was sent twice."""
    event, expected = ROWS[title]
    whole = {
        "verb": "create",
        "user": {"username": CHILD},
        "userAgent": "x/1 (linux)",
        "objectRef": {"resource": "virtualmachines"},
        "responseStatus": {"code": 201},
        "requestObject": {"spec": {"a": 1}},
        "responseObject": {"spec": {"a": 1, "default": 2}},
        **event,
    }
    log = tmp_path / "audit.log"
    log.write_text(f"{json.dumps(whole)}\n" * 2)
    assert list(dropped_fields.of_log(log)) == expected
