"""`mooring adopt load-balancer` at the command line: each mistake is one sentence.

tests/lab/services/restore_test.py runs it upon a real cluster and cloud.
"""

import pytest
from click import testing

from mooring.commands import main
from tests.harness.daemons.unreachable import SECRET

ID = "00000000-0000-4000-8000-000000000001"
SERVICE = "--service=default/web"
ROWS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no ID": ((SERVICE,), 2, "Missing argument 'ID'."),
    "no Service": ((ID,), 2, "Missing option '--service'."),
    "two IDs": ((ID, ID, SERVICE), 2, "unexpected extra argument"),
    "an output for programs": (
        (ID, SERVICE, "--output=json"),
        2,
        "--output: this command prints text; must be table.",
    ),
    "a cluster that does not answer": ((ID, SERVICE, "--yes"), 1, "deployments: "),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_mistake_is_one_sentence(row: str, nowhere: tuple[str, ...]) -> None:
    more, code, sentence = ROWS[row]
    done = testing.CliRunner().invoke(
        main.commands, ["adopt", "load-balancer", *nowhere, *more], prog_name="mooring"
    )
    print(row, done.stderr)
    assert done.exit_code == code
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert sentence in done.stderr
    assert SECRET not in done.output
