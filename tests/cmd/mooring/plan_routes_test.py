"""How plans of routes are printed, and what is refused."""

import pathlib

import pytest
from click import testing

from lib.ccm import previews_routes
from lib.routes.preview import RouteAction, RoutesRow
from mooring.commands import plan_routes

ROWS = (
    RoutesRow("router r", RouteAction.CREATE, "10.1.0.0/24 via 10.0.0.5"),
    RoutesRow("Node [bold]x", RouteAction.PROBLEM, "RouteConflict: \x1b[31mred"),
)


def test_texts_of_others_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    plan_routes.show(previews_routes.RoutesPreview("r", ROWS, 3, ""), "wide")
    text = capsys.readouterr().out
    assert "10.1.0.0/24 via 10.0.0.5" in text
    assert "[bold]x" in text
    assert "\x1b" not in text


def test_the_summary_counts_changes_and_problems() -> None:
    plan = previews_routes.RoutesPreview("r", ROWS, 3, "")
    assert plan_routes.summary(plan) == "1 changes for 3 Nodes in r, 1 problems."
    nothing = previews_routes.RoutesPreview("r", (), 3, "")
    assert plan_routes.summary(nothing) == "No changes for 3 Nodes in r."


def test_without_a_router_there_is_no_plan(tmp_path: pathlib.Path) -> None:
    """One sentence that names the key."""
    file = tmp_path / "cloud.conf"
    file.write_text(
        '[Global]\nauth-url="http://127.0.0.1:9"\nusername="u"\npassword="p"\n'
        'tenant-name="t"\ndomain-id="default"\n'
    )
    run = testing.CliRunner().invoke(plan_routes.routes, ["--cloud-config", str(file)])
    assert run.exit_code == 1
    assert "[Route] router-id: not set" in run.output
