"""Ports in use and certificates that do not match are named; nothing is started."""

import contextlib
import datetime
import pathlib
import socket
import tracemalloc
from collections.abc import Iterator

import pytest
import structlog

from lib.osdpl.daemon import options
from lib.process import certificates, command_line
from osdpl_controller import main, version

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {token: x}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
"""
NOW = datetime.datetime.now(datetime.UTC)


def pair(folder: pathlib.Path, name: str) -> tuple[str, str]:
    """Write a certificate and its key; return the files."""
    created = certificates.self_signed([name], NOW)
    files = (folder / f"{name}.crt", folder / f"{name}.key")
    for file, content in zip(files, (created.certificate, created.key), strict=True):
        file.write_bytes(content)
    return str(files[0]), str(files[1])


@pytest.fixture(autouse=True)
def logs_end_with_the_test() -> Iterator[None]:
    """Logs go to the standard error of now, which is not that of later tests.

    tracemalloc is imported before two threads do it, when they drop what is unclosed.
    """
    assert not tracemalloc.is_tracing()
    yield
    structlog.reset_defaults()


@pytest.fixture()
def taken() -> Iterator[int]:
    """Yield a port that is in use."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield int(listener.getsockname()[1])


def free() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    "case", ["secure port", "webhook port", "one port for both", "files of two pairs"]
)
def test_it_is_named(
    case: str,
    taken: int,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = pair(tmp_path, "one"), pair(tmp_path, "other")
    port = free()
    ports = {
        "secure port": (taken, port),
        "webhook port": (port, taken),
        "one port for both": (port, port),
    }.get(case, (port, 0))
    words = [f"--secure-port={ports[0]}", f"--webhook-port={ports[1]}"]
    if case == "files of two pairs":
        words += [f"--tls-cert-file={first[0]}", f"--tls-private-key-file={second[1]}"]
        shown = f'--tls-cert-file: invalid value "{first[0]}"'
    else:
        used = port if case == "one port for both" else taken
        shown = f'serving address: invalid value "127.0.0.1:{used}"'
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    words += [f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1"]
    program = command_line.Program(main.NAME, main.HELP, version.VERSION, options.FLAGS)
    code = command_line.execute(program, main.run, words)
    output = "".join(capsys.readouterr())
    (message,) = (line for line in output.splitlines() if "invalid" in line)
    print(f"{case:20} {message}")
    assert code == 2
    assert shown in message
    assert "Traceback" not in output
