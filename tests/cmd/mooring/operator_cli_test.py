"""`mooring plan` and `mooring doctor` at the command line, with nothing to reach."""

import json
import pathlib

import pytest

from tests.harness.daemons.tool import mooring
from tests.harness.daemons.unreachable import CONF, SECRET


@pytest.mark.parametrize(
    "words", [("plan", "nodes"), ("plan", "services"), ("doctor",)]
)
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            ("--cloud-config-secret=x", "--cloud=nimbus"),
            "'nimbus' is not",
        ),
        (("--cloud-config=x", "--cloud=nimbus"), "'nimbus' is not"),
        (("--cloud-config=x", "--no-such"), "No such option"),
    ],
)
def test_a_wrong_command_line_is_refused(
    words: tuple[str, ...], more: tuple[str, ...], sentence: str
) -> None:
    result = mooring(*words, *more)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--service-account=just-a-name", "'just-a-name' is not of the form NAMESPACE"),
        ("--rbac=/etc/hostname", "--rbac: it "),
        ("--timeout=0", "0.0 is not in the range"),
    ],
)
def test_doctor_names_what_is_wrong_with_an_option(option: str, sentence: str) -> None:
    result = mooring("doctor", "--cloud-config=x", option)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [("plan", "nodes"), ("orphans",)])
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "GET /apis/apps/v1/deployments: http://127.0.0.1:1: connection refused"),
        (("--cloud-config-secret=name",), 'invalid value "name": must be NAMESPACE/'),
        (
            ("--cloud-config-secret=a/b", "--cloud-config=x"),
            "--cloud-config: must not be set together with --cloud-config-secret",
        ),
    ],
)
def test_a_cloud_conf_in_the_cluster_that_cannot_be_read(
    words: tuple[str, ...],
    more: tuple[str, ...],
    sentence: str,
    nowhere: tuple[str, ...],
) -> None:
    result = mooring(*words, nowhere[1], *more)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert SECRET not in result.stderr


def test_an_invalid_command_line_is_no_change() -> None:
    """With --detailed-exitcode, 2 means changes."""
    for more, code in (((), 2), (("--detailed-exitcode",), 1)):
        assert mooring("plan", "nodes", "--no-such", *more).returncode == code


@pytest.mark.parametrize("what", ["nodes", "services"])
def test_a_plan_needs_a_cloud_conf_that_can_be_read(
    what: str, tmp_path: pathlib.Path, nowhere: tuple[str, ...]
) -> None:
    """Every problem is one sentence; a secret is in none of them."""
    wrong = tmp_path / "wrong.conf"
    wrong.write_text(CONF.replace("http://127.0.0.1:1/v3", "nowhere"))
    binary = tmp_path / "binary.conf"
    binary.write_bytes(b"\xff\xfe" + SECRET.encode())
    for file, sentence in (
        ("/nonexistent/cloud.conf", "/nonexistent/cloud.conf: no such file"),
        (str(tmp_path), f"{tmp_path}: is a directory"),
        (str(wrong), '[Global] auth-url: invalid value "nowhere": must be the URL'),
        (str(binary), f"{binary}: not a text file in UTF-8"),
    ):
        result = mooring("plan", what, nowhere[1], f"--cloud-config={file}")
        print(result.stderr)
        assert result.returncode == 1
        assert sentence in result.stderr
        assert "Traceback" not in result.stderr
        assert SECRET not in result.stderr


@pytest.mark.parametrize("what", ["nodes", "services"])
def test_a_plan_without_an_api_server_is_one_sentence(
    what: str, nowhere: tuple[str, ...]
) -> None:
    result = mooring("plan", what, *nowhere)
    assert result.returncode == 1
    path = "/apis/apps/v1/deployments"
    assert f"GET {path}: http://127.0.0.1:1: connection refused" in result.stderr
    assert "Traceback" not in result.stderr
    assert SECRET not in result.stderr + result.stdout


def test_services_are_not_planned_where_load_balancers_are_off(
    tmp_path: pathlib.Path, nowhere: tuple[str, ...]
) -> None:
    conf = tmp_path / "off.conf"
    conf.write_text(f"{CONF}\n[LoadBalancer]\nenabled = false\n")
    result = mooring("plan", "services", nowhere[1], f"--cloud-config={conf}")
    assert result.returncode == 1
    assert "[LoadBalancer] enabled is false" in result.stderr


def test_a_doctor_who_reaches_nothing_says_so_line_by_line(
    nowhere: tuple[str, ...],
) -> None:
    """Each side by itself, with a remedy; as JSON, the same lines."""
    result = mooring("doctor", *nowhere)
    print(result.stdout)
    assert (result.returncode, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAIL  ")]
    assert [line.split("  ")[1] for line in failed] == ["credentials", "API server"]
    assert all("; remedy: " in line for line in failed)
    assert "the cloud can't be reached" in failed[0]
    as_json = mooring("doctor", *nowhere, "--output=json")
    assert as_json.returncode == 1
    document = json.loads(as_json.stdout)["checks"]
    assert len(document) == len(lines)
    assert {row["state"] for row in document} == {"OK", "FAIL", "SKIP"}
    assert SECRET not in result.stdout + as_json.stdout
