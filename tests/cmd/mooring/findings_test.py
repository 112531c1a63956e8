"""How `mooring doctor` waits, and shows what it found."""

from collections.abc import Iterator

import pytest

from lib.doctor.model import CheckResult, CheckState
from mooring.commands import findings, outputs

OK = CheckResult("lease", CheckState.OK, "held")
FAILED = CheckResult("lease", CheckState.FAILED, "expired", "start it")
MANY = CheckResult("rights", CheckState.FAILED, "lacks 2", "apply", ("get a", "get b"))


def runs(*rounds: CheckResult) -> Iterator[Iterator[CheckResult]]:
    for result in rounds:
        yield iter([result])


@pytest.mark.parametrize(
    ("rounds", "wait_s", "state"),
    [
        ((FAILED, FAILED, OK), 60.0, CheckState.OK),
        ((FAILED, OK), 0.0, CheckState.FAILED),
        ((FAILED, FAILED, FAILED), 1e-9, CheckState.FAILED),
    ],
    ids=[
        "until no check fails",
        "once, without --wait",
        "the last results when the time is over",
    ],
)
def test_checks_are_repeated_until_none_fails(
    rounds: tuple[CheckResult, ...],
    wait_s: float,
    state: CheckState,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(findings, "POLL_S", 0.001)
    left = runs(*rounds)
    (result,) = findings.until_well(lambda: next(left), wait_s)
    assert result.state is state


def test_results_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    def slowly() -> Iterator[CheckResult]:
        yield OK
        assert "OK" in capsys.readouterr().out
        yield FAILED

    assert findings.show(slowly(), outputs.TABLE) == [OK, FAILED]
    assert "FAIL  lease" in capsys.readouterr().out


def test_wide_and_documents_name_what_the_table_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings.show([MANY], outputs.TABLE)
    assert "get a" not in capsys.readouterr().out
    for output in (outputs.WIDE, outputs.JSON):
        findings.show([MANY], output)
        assert "lacks 2; get a; get b" in capsys.readouterr().out
