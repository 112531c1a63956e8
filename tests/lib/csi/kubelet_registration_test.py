"""The kubelet finds the registration socket, whatever happens to it."""

import contextlib
import pathlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import grpc
import pytest

from lib.csi import kubelet_registration
from lib.csi.spec import pluginregistration_pb2 as pb
from lib.process import config

Eventually = Callable[[Callable[[], bool]], None]
_INFO = "/pluginregistration.Registration/GetInfo"
_NOTE = "/pluginregistration.Registration/NotifyRegistrationStatus"
LONG_S = 180.0


@contextlib.contextmanager
def serving(path: pathlib.Path) -> Iterator[kubelet_registration.Registration]:
    created = kubelet_registration.Registration(
        "driver.example", "/k/csi.sock", str(path)
    )
    stop = threading.Event()
    thread = threading.Thread(target=created.run, args=(stop,))
    thread.start()
    try:
        yield created
    finally:
        stop.set()
        thread.join(LONG_S)
        assert not thread.is_alive()


def ask(path: pathlib.Path) -> pb.PluginInfo:
    """Return what the kubelet reads."""
    with grpc.insecure_channel(f"unix:{path}") as channel:
        method = channel.unary_unary(
            _INFO, pb.InfoRequest.SerializeToString, pb.PluginInfo.FromString
        )
        return method(pb.InfoRequest(), timeout=LONG_S, wait_for_ready=True)


def wait_for(path: pathlib.Path) -> None:
    deadline = time.monotonic() + LONG_S
    while not path.is_socket():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_kubelet_reads_the_driver_and_reports_the_result(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "reg.sock"
    with serving(path) as created:
        wait_for(path)
        info = ask(path)
        assert (info.type, info.name) == ("CSIPlugin", "driver.example")
        assert (info.endpoint, list(info.supported_versions)) == (
            "/k/csi.sock",
            ["1.0.0"],
        )
        with grpc.insecure_channel(f"unix:{path}") as channel:
            note = channel.unary_unary(
                _NOTE,
                pb.RegistrationStatus.SerializeToString,
                pb.RegistrationStatusResponse.FromString,
            )
            note(pb.RegistrationStatus(plugin_registered=True), timeout=LONG_S)
            assert created.is_registered
            note(pb.RegistrationStatus(error="no"), timeout=LONG_S)
            assert not created.is_registered
    assert not path.exists()


def test_a_stale_socket_is_replaced_and_a_deleted_one_created_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_registration, "CHECK_S", 0.05)
    path = tmp_path / "reg.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    before = path.lstat().st_ino
    with serving(path):
        assert ask(path).name == "driver.example"
        assert path.is_socket()
        path.unlink()
        wait_for(path)
        assert ask(path).name == "driver.example"
    assert before > 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x" * 120, "a path of at most 107 bytes"),
        ("absent/reg.sock", "a path in an existing folder"),
        ("file", "the path of a socket, or a free one"),
    ],
)
def test_a_path_that_cannot_hold_a_socket(
    tmp_path: pathlib.Path, name: str, expected: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(config.ConfigError, match=expected):
        kubelet_registration.Registration("d", "/e", str(tmp_path / name))
    with pytest.raises(config.ConfigError, match="an absolute path"):
        kubelet_registration.Registration("d", "/e", name)
