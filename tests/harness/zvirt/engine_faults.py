"""Faults of the simulated engine, each for one kind of request: rows of tables.

Rules: `FAULTS`, `ONCE` and `NOT_OF_READS` name every rule of lib/lab/zvirt/settings.py;
a test compares them.
"""

from collections.abc import Callable, Mapping

from tests.lib.lab.zvirt.stage import PASSWORD, Stage

USER = "admin@internal"
FAULTS: Mapping[str, str] = {
    "a gateway's page with 404": "html {} 404 -",
    "a gateway's page with 502": "html {} 502 -",
    "a gateway's page with 503": "html {} 503 -",
    "a fault with 400": "refuse {} 400 - Operation failed",
    "a fault with 404": "refuse {} 404 - Entity not found",
    "a fault with 409": "refuse {} 409 - Related operation is currently in progress.",
    "a fault with 500": "refuse {} 500 - Internal Engine Error",
    "a web page with 401": "html {} 401 -",
    "no permit": "forbid {}",
    "a late response": "pause {} 20 -",
    "no response": "silence {} -",
    "the connection ends": "no-response {} -",
    "a response without an effect": "no-effect {} -",
}
"""Rules of the engine by fault; {} is method and path."""


def _revoke(stage: Stage) -> None:
    stage.engine.settings.replace(["hide *"])


def _hide_clusters(stage: Stage) -> None:
    stage.engine.settings.replace(["hide Default"])


def _age(stage: Stage) -> None:
    stage.engine.settings.replace(["version 4.3"])


def _rotate(stage: Stage) -> None:
    stage.sso.set_password(USER, "another password")
    stage.sso.lose_tokens()


def _idle(stage: Stage) -> None:
    stage.advance(3600)


WHOLE: Mapping[str, Callable[[Stage], None]] = {
    "all permissions are revoked": _revoke,
    "the cluster and the data center are hidden": _hide_clusters,
    "an older engine": _age,
    "the password is another": _rotate,
    "all tokens are lost": lambda stage: stage.sso.lose_tokens(),
    "an idle hour": _idle,
}
"""Faults of the whole engine."""
NOT_OF_READS = frozenset(
    {
        "delay",
        "hold",
        "fail",
        "without-agent",
        "ignore-shutdown",
        "hot-plug-fails",
        "taken-id-fails-later",
        "quota",
    }
)
"""Rules about transitions, which reads do not cause."""


def mend(stage: Stage) -> None:
    """End all faults."""
    stage.engine.settings.replace([])
    stage.sso.set_password(USER, PASSWORD)
