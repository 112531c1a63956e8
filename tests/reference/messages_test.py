"""20 kinds of faults in cloud.conf, twelve of the command line, and their messages.

A fault ends the start with one line `<field>: <problem>`, or is a warning at start
where the reference starts, too. A row with another message, or none, fails.
"""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from csi_controller import main as csi_controller
from csi_controller import version
from lib.ccm import options
from lib.cloud.support.source import Unobserved
from lib.process import command_line, config
from openstack_ccm import cloud_conf
from openstack_ccm import main as manager

KEYSTONE = "auth-url = https://keystone.example:5000/v3\n"
LOGIN = "username = u\npassword = s3cr3t\nuser-domain-name = d\ntenant-id = p\n"
GLOBAL = f"[Global]\n{KEYSTONE}{LOGIN}"
HIDDEN = "s3cr3t"

FILES: Mapping[str, tuple[str | bytes, str]] = {
    "empty": ("", "[Global] auth-url: not set: must be the URL of Keystone"),
    "no section": (KEYSTONE, "line 1: invalid syntax"),
    "no auth-url": (f"[Global]\n{LOGIN}", "[Global] auth-url: not set: must be"),
    "malformed URL": (
        f"[Global]\nauth-url = keystone\n{LOGIN}",
        '[Global] auth-url: invalid value "keystone": must be the URL of Keystone',
    ),
    "integer": (
        f"{GLOBAL}[LoadBalancer]\nmax-shared-lb = many\n",
        '[LoadBalancer] max-shared-lb: invalid value "many": must be a whole number',
    ),
    "duration": (
        f"{GLOBAL}[LoadBalancer]\nmonitor-delay = soon\n",
        '[LoadBalancer] monitor-delay: invalid value "soon": must be a duration',
    ),
    "CIDR": (
        f"{GLOBAL}[LoadBalancer]\nmember-cidr = ten\n",
        '[LoadBalancer] member-cidr: invalid value "ten": must be CIDRs such as',
    ),
    "two credentials": (
        f"{GLOBAL}token = t\n",
        "[Global] token: must not be set together with password",
    ),
    "CA missing": (
        f"{GLOBAL}ca-file = /nonexistent/ca.crt\n",
        "[Global] ca-file: /nonexistent/ca.crt: no such file",
    ),
    "section not closed": ("[Global\n", "line 1: invalid syntax"),
    "quote not closed": (f'{GLOBAL}region = "north\n', "line 7: invalid syntax"),
    "clouds-file missing": (
        "[Global]\nuse-clouds = true\nclouds-file = /nonexistent/clouds.yaml\n",
        "[Global] clouds-file: invalid value",
    ),
    "not UTF-8": (b"[Global]\nusername = \xff\xfe\n", "not a text file in UTF-8"),
    "a YAML file": ("clouds:\n  a:\n    auth: {}\n", "names with use-clouds = true"),
    "project missing": (
        f"[Global]\n{KEYSTONE}{LOGIN.replace('tenant-id = p', 'domain-name = d')}",
        "[Global] tenant-id: not set: must be set, or tenant-name",
    ),
    "unknown key": (
        f"{GLOBAL.replace('username = u', 'user-id = i')}user-nam = u\n",
        "user-nam: unknown key: did you mean username?",
    ),
    "unknown section": (f"{GLOBAL}[Globe]\n", "[Globe]: unknown section"),
    "tls-insecure is no boolean": (
        f"{GLOBAL}tls-insecure = maybe\n",
        'tls-insecure: invalid value "maybe": must be true or false; using false',
    ),
    "unknown lb-provider": (
        f"{GLOBAL}[LoadBalancer]\nlb-provider = mine\n",
        'lb-provider: unsupported value "mine": must be one of amphora',
    ),
    "unknown key in a class": (
        f'{GLOBAL}[LoadBalancerClass "x"]\nsubnet = a\n',
        '[LoadBalancerClass "x"] subnet: unknown key',
    ),
}
"""Kind, content, and part of the line that reports it."""


def reported(path: pathlib.Path) -> tuple[str, ...]:
    """Return what a start with this file reports: problems, or else warnings."""
    try:
        opened = cloud_conf.source(str(path), {}, ()).open(Unobserved())
    except config.ConfigError as error:
        return tuple(map(str, error.problems))
    return tuple(opened.warnings)


@pytest.mark.parametrize("kind", FILES)
def test_each_kind_of_fault_in_cloud_conf_has_its_message(
    kind: str, tmp_path: pathlib.Path
) -> None:
    """Prints kind and lines; none has a secret, one has the message."""
    text, expected = FILES[kind]
    path = tmp_path / "cloud.conf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    lines = reported(path)
    print(f"{kind}: {lines}")
    assert any(expected in line for line in lines), lines
    assert HIDDEN not in str(lines)


def test_there_are_twenty_kinds() -> None:
    assert len(FILES) == 20


# ------------------------------------------------------------------ command line


def lines(
    program: command_line.Program, words: list[str], capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return standard error of a start that fails with code 2."""

    def run(values: object) -> int:
        raise AssertionError("it started")

    assert command_line.execute(program, run, words) == 2
    return capsys.readouterr().err.splitlines()


def csi() -> command_line.Program:
    return command_line.Program(
        csi_controller.NAME,
        csi_controller.HELP,
        version.VERSION,
        csi_controller.FLAGS,
        csi_controller.judge,
    )


def ccm(path: pathlib.Path, text: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of openstack-ccm with a cloud.conf."""
    path.write_text(text)
    flags = options.FLAGS
    program = command_line.Program(manager.NAME, "", "0", flags, manager.judge)
    words = ["--cloud-provider=openstack", f"--cloud-config={path}"]
    return lines(program, words, capsys)


def test_f1_a_port_out_of_range(capsys: pytest.CaptureFixture[str]) -> None:
    shown = lines(csi(), ["--endpoint=tcp://127.0.0.1:99999"], capsys)
    assert any('--endpoint: invalid value "tcp://127.0.0.1:99999"' in s for s in shown)


def test_f2_all_problems_together(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--endpoint=tcp//x", "--cloud-config=/nope", "--http-endpoint=80"]
    shown = "\n".join(lines(csi(), words, capsys))
    for flag in ("--endpoint: ", "--cloud-config: ", "--http-endpoint: "):
        assert flag in shown


def test_f3_a_missing_secret_is_named(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"[Global]\n{KEYSTONE}application-credential-id = a\n"
    shown = "\n".join(ccm(tmp_path / "a", text, capsys))
    assert "application-credential-secret: not set: must be set" in shown
    assert "hidden" not in shown


def test_f4_all_missing_keys_together(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = "\n".join(ccm(tmp_path / "a", f"[Global]\n{KEYSTONE}", capsys))
    for key in ("password", "username", "user-domain-name", "tenant-id"):
        assert f"[Global] {key}: not set" in shown


def test_f5_a_directory_and_an_absent_file(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, reason in ((tmp_path, "is a directory"), ("/nope", "no such file")):
        shown = lines(csi(), [f"--cloud-config={path}"], capsys)
        assert any(f"--cloud-config: {path}: {reason}" in s for s in shown)


BIND = """
import importlib, socket, sys
from concurrent import futures
if sys.argv[1:]:
    from lib.process import flags
    program = importlib.import_module(f"{sys.argv[1]}.main")
    program.judge(flags.parse(program.FLAGS, []))
import grpc
in_use = socket.create_server(("127.0.0.1", 0))
server = grpc.server(futures.ThreadPoolExecutor(1), options=(("grpc.so_reuseport", 0),))
try:
    server.add_insecure_port("127.0.0.1:%d" % in_use.getsockname()[1])
except RuntimeError as error:
    print(error)
"""
"""Starts a server on a port in use, behind the check of a command line, if any."""


def of_grpc(*program: str) -> str:
    """Return what gRPC writes to standard error when it cannot bind a port."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GRPC_")}
    done = subprocess.run(
        [sys.executable, "-c", BIND, *program],
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    assert "Failed to bind" in done.stdout
    return done.stderr


@pytest.mark.parametrize("program", ["csi_controller", "csi_node"])
def test_f6_grpc_writes_no_lines_of_its_own(program: str) -> None:
    """Without the check of the command line it writes one."""
    plain, checked = of_grpc(), of_grpc(program)
    print(f"without: {plain!r}; with {program}: {checked!r}")
    assert "Address already in use" in plain
    assert checked == ""


def test_f8_an_unknown_method_and_a_malformed_id(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cloud.conf"
    classes = '[LoadBalancerClass "x"]\nfloating-subnet-id = not-a-uuid\n'
    path.write_text(f"{GLOBAL}[LoadBalancer]\nlb-method = FASTEST\n{classes}")
    shown = "\n".join(reported(path))
    assert '[LoadBalancer] lb-method: unsupported value "FASTEST": must be' in shown
    assert 'floating-subnet-id: invalid value "not-a-uuid": must be a UUID' in shown


@pytest.mark.parametrize(
    "module",
    ["openstack_ccm", "csi_controller", "cloud_data_discoverer"],
)
def test_f10_the_module_runs(module: str) -> None:
    """It was silent, with exit code 0."""
    done = subprocess.run(
        [sys.executable, "-m", f"{module}.main", "--no-such-flag"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 2
    assert "--no-such-flag: unknown flag" in done.stderr


def test_f11_help_is_fit_for_reading(capsys: pytest.CaptureFixture[str]) -> None:
    flags = options.FLAGS
    program = command_line.Program(manager.NAME, "", "0", flags)
    assert command_line.execute(program, lambda values: 1, ["--help"]) == 0
    shown = capsys.readouterr().out
    assert "(default false)" not in shown
    assert "(required)" in shown


ELSEWHERE: Mapping[str, tuple[str, str]] = {
    "F7: render without a document": (
        "tests/cmd/mooring/render_test.py",
        "OpenStackClusterConfiguration: not set: must be a document of",
    ),
    "F9: host and cause of a failed connection": (
        "tests/lib/kube/client_test.py",
        "connection refused",
    ),
    "F12: docs/design.md about lib/balancers": (
        "tests/layout/design_page_test.py",
        "test_a_package_that_a_program_runs_is_not_called_unused",
    ),
}
"""Faults whose tests need other programs: file and text."""


@pytest.mark.parametrize("fault", ELSEWHERE)
def test_other_faults_have_their_place(fault: str) -> None:
    path, text = ELSEWHERE[fault]
    assert text in pathlib.Path(path).read_text()


def test_each_of_the_twelve_faults_has_a_test() -> None:
    """Prints the numbers."""
    own = re.findall(r"^def test_f(\d+)_", pathlib.Path(__file__).read_text(), re.M)
    others = re.findall(r"^F(\d+):", "\n".join(ELSEWHERE), re.M)
    print(sorted(map(int, own + others)))
    assert sorted(map(int, own + others)) == list(range(1, 13))
