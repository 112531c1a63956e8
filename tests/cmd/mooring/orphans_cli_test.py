"""`mooring orphans` at the command line, with nothing to reach: each mistake."""

import pathlib

import pytest
from click import testing

from mooring.commands import main
from tests.harness.daemons.unreachable import CONF, SECRET

UUID = "0b1d4a6e-0000-4000-8000-00000000000a"
ROWS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no duration": (
        ("--older-than=soon",),
        2,
        'invalid value "soon": must be a duration from 0',
    ),
    "a negative duration": (
        ("--older-than=-5m",),
        2,
        'invalid value "-5m": must be a duration from 0',
    ),
    "no kind": (("--kind=server",), 2, "'server' is not one of"),
    "--yes alone": (("--yes",), 2, "--yes: must be given with --delete."),
    "--kept alone": (("--kept",), 2, "--kept: must be given with --delete."),
    "--volumes alone": (("--volumes",), 2, "--volumes: must be given with --delete."),
    "gone without an ID": (
        ("--cluster-is-gone",),
        2,
        "--cluster-is-gone: requires --cluster-id",
    ),
    "an ID that clusters may share": (
        ("--volume-cluster-id=kubernetes",),
        2,
        '--volume-cluster-id: invalid value "kubernetes": must be a UUID',
    ),
    "a cluster that does not answer": ((), 1, "deployments"),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_mistake_gives_one_sentence(row: str, nowhere: tuple[str, ...]) -> None:
    more, code, sentence = ROWS[row]
    done = testing.CliRunner().invoke(
        main.commands, ["orphans", *nowhere, *more], prog_name="mooring"
    )
    print(row, done.stderr)
    assert done.exit_code == code
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert sentence in done.stderr
    assert SECRET not in done.output


def test_the_kubeconfig_of_a_gone_cluster_is_required(tmp_path: pathlib.Path) -> None:
    """Without it nothing would show that the cluster does not answer."""
    conf = tmp_path / "cloud.conf"
    conf.write_text(CONF)
    words = ["orphans", f"--cloud-config={conf}", "--cluster-is-gone"]
    done = testing.CliRunner().invoke(
        main.commands,
        [*words, f"--cluster-id={UUID}"],
        env={"KUBECONFIG": None, "HOME": "/nonexistent"},
        prog_name="mooring",
    )
    assert done.exit_code == 2
    assert "--kubeconfig: must be that of the cluster that is gone" in done.stderr
