"""Objects by age and version."""

from typing import Any

from lib.operator_edge import objects


def document(name: str, version: str, uid: str = "", born: str = "1") -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "n",
        "uid": uid or name,
        "resourceVersion": version,
        "creationTimestamp": f"2026-11-22T12:00:0{born}Z",
    }
    return {"metadata": metadata}


def test_the_oldest_comes_first() -> None:
    known = objects.Objects()
    known.put(document("a", "5", born="3"))
    known.put(document("b", "6", born="2"))
    assert known.by_age() == ("n/b", "n/a")


def test_an_older_state_does_not_replace_a_newer_one() -> None:
    known = objects.Objects()
    known.put(document("a", "10"))
    known.put(document("a", "9"))
    held = known.get("n/a")
    assert held is not None
    assert held["metadata"]["resourceVersion"] == "10"
    known.put(document("a", "3", uid="other"))
    held = known.get("n/a")
    assert held is not None
    assert held["metadata"]["uid"] == "other"


def test_a_late_deletion_of_another_object_is_ignored() -> None:
    known = objects.Objects()
    known.put(document("a", "10", uid="new"))
    known.remove(document("a", "9", uid="old"))
    assert known.get("n/a") is not None
    known.remove(document("a", "11", uid="new"))
    assert known.get("n/a") is None
    assert known.by_age() == ()
