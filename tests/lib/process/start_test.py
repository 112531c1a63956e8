"""The first entry of a daemon."""

import json
from collections.abc import Mapping

import pytest

from lib.process import flags, kinds, logs, metrics, start

PERIOD = flags.Flag("period", kinds.DURATION, 5.0, "Period.")


def first_entry(
    capsys: pytest.CaptureFixture[str], build: metrics.Build
) -> Mapping[str, object]:
    values = flags.parse([PERIOD], ["--period=7s"])
    start.log_start(build, start.StartSettings(0, logs.JSON, values))
    entry: Mapping[str, object] = json.loads(capsys.readouterr().err.splitlines()[0])
    return entry


@pytest.mark.usefixtures("restored_logging")
def test_the_commit_of_the_environment_is_logged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(metrics.COMMIT, "0123abcd")
    entry = first_entry(capsys, metrics.Build("a-daemon", "1.2.3"))
    shown = {key: entry[key] for key in ("msg", "version", "commit", "flags")}
    assert shown == {
        "msg": "starting",
        "version": "1.2.3",
        "commit": "0123abcd",
        "flags": ["--period=7s"],
    }


@pytest.mark.usefixtures("restored_logging")
def test_an_unknown_commit_is_omitted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(metrics.COMMIT, raising=False)
    entry = first_entry(capsys, metrics.Build("a-daemon", "1.2.3"))
    assert entry["version"] == "1.2.3"
    assert "commit" not in entry
