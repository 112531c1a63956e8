"""Bad flags and files are told in one line each, all at once."""

import functools
import os
import pathlib
import subprocess
import sys

import prometheus_client
import pytest

from csi_controller import main, openstack_clouds
from lib.csi import options
from lib.daemon import counting, reopening
from lib.process import config, flags

GOOD = """[Global]
auth-url = http://127.0.0.1:1/v3
username = demo
password = secret-word
tenant-name = demo
domain-id = default
"""
SECOND = """[Global "second"]
auth-url = http://127.0.0.1:2/v3
username = other
password = other-word
tenant-name = demo
domain-id = default
"""


def _read(*words: str) -> options.DriverOptions:
    return main.read(flags.parse(main.FLAGS, words))


def test_the_platforms_own_arguments_are_taken(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud-config"
    file.write_text(GOOD)
    observed = _read(
        "--nodeid=master-0",
        f"--cloud-config={file}",
        "--cluster=d5a0",
        "--endpoint=unix:///csi/csi.sock",
    )
    assert observed.endpoint == "unix:///csi/csi.sock"
    assert observed.cluster == "d5a0"
    assert observed.cloud_names == ("",)
    assert observed.has_zones
    assert observed.has_controller
    assert observed.http is None


def test_what_is_missing_is_told_together() -> None:
    with pytest.raises(config.ConfigError) as raised:
        _read("--http-endpoint=8080", "--kubeconfig=/no/such/file")
    assert [str(problem) for problem in raised.value.problems] == [
        (
            "--endpoint: not set: must be unix:///path/of/a/socket or tcp://host:port,"
            " with a port up to 65535"
        ),
        "--cloud-config: not set: must be the path of a cloud.conf",
        ("--kubeconfig: /no/such/file: no such file"),
        (
            '--http-endpoint: invalid value "8080": must be host:port or :port, with a'
            " port from 1 to 65535"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", ("0.0.0.0", 8080)),  # noqa: S104
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_http_endpoint_is_read_as_go_reads_it(
    text: str, address: tuple[str, int]
) -> None:
    observed = _read(
        "--endpoint=tcp://127.0.0.1:1",
        "--provide-controller-service=false",
        f"--http-endpoint={text}",
    )
    assert observed.http == address


def test_an_unknown_kind_of_cloud_is_refused() -> None:
    with pytest.raises(
        config.ConfigError,
        match='--cloud: unsupported value "aws": must be one of openst',
    ):
        _read("--cloud=aws")


def test_several_files_are_one_and_later_ones_win(tmp_path: pathlib.Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.write_text(GOOD)
    second.write_text("[Global]\nusername = late\n" + SECOND)
    openers = openstack_clouds.openers(
        [str(first), str(second)], ["", "second"], {}, (), "kube"
    )
    assert list(openers) == ["", "second"]
    calls = counting.CloudMetrics("openstack", prometheus_client.CollectorRegistry())
    opened = openers[""](calls)
    assert not opened.changed()
    second.write_text("[Global]\nusername = later\n" + SECOND)
    assert opened.changed()


def test_sections_of_other_programs_matter_neither_at_the_start_nor_later(
    tmp_path: pathlib.Path,
) -> None:
    """A typing error in [LoadBalancer], and load balancers that are switched off."""
    file = tmp_path / "cloud.conf"
    bad = '[LoadBalancer]\nmonitor-delay = soon\n[LoadBalancerClass "x"]\nodd = 1\n'
    file.write_text(GOOD + bad)
    openers = openstack_clouds.openers([str(file)], [""], {}, (), "kube")
    calls = counting.CloudMetrics("openstack", prometheus_client.CollectorRegistry())
    held = reopening.Reopening(functools.partial(openers[""], calls))
    volumes = held.part(lambda now: now.volumes)
    assert volumes is not None
    before = volumes()
    off = "[LoadBalancer]\nenabled = false\n[Route]\nrouter-id = none\n"
    file.write_text(GOOD.replace("secret", "rotated") + off)
    held.look()
    assert volumes() is not before


def test_a_cloud_that_no_section_describes_is_told(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "one"
    file.write_text(GOOD)
    with pytest.raises(config.ConfigError, match=r'\[Global "x"\]: not found'):
        openstack_clouds.openers([str(file)], ["", "x"], {}, (), "kube")


def test_problems_of_a_file_name_no_secret(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "one"
    file.write_text(GOOD.replace("http:", "ftp:") + "password = x y z\n")
    with pytest.raises(config.ConfigError) as raised:
        openstack_clouds.openers([str(file)], [""], {}, (), "kube")
    assert "auth-url" in str(raised.value)
    assert "x y z" not in str(raised.value)


def test_help_loads_neither_a_cloud_nor_grpc() -> None:
    """The provider, and all that is heavy, is imported only when it is run."""
    code = (
        "import sys; from csi_controller import main;"
        "print([m for m in ('openstack', 'keystoneauth1', 'grpc') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join([".", "cmd", *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr


ENDPOINTS = [
    ("unix:///csi/csi.sock", True),
    ("UNIX://csi/csi.sock", True),
    ("tcp://127.0.0.1:10000", True),
    ("tcp://:10000", True),
    ("tcp://[::1]:65535", True),
    ("tcp://127.0.0.1:99999", False),
    ("tcp://127.0.0.1", False),
    ("tcp//x", False),
    ("unix://", False),
    ("http://127.0.0.1:1", False),
    ("", False),
]


@pytest.mark.parametrize(("text", "is_valid"), ENDPOINTS)
def test_endpoints(text: str, is_valid: bool) -> None:
    """gRPC would listen on port 34463 for 99999."""
    assert options.is_endpoint(text) is is_valid


def test_all_flags_are_reported_together(tmp_path: pathlib.Path) -> None:
    """Those that can't be read, those that are wrong, and files."""
    words = (
        "--v=loud",
        "--endpoint=tcp//x",
        "--http-endpoint=8080",
        f"--cloud-config={tmp_path}",
    )
    ended = _run(*words)
    assert ended.returncode == 2
    fields = [line.split(": ")[1] for line in ended.stderr.splitlines()]
    assert sorted(fields) == [
        "--cloud-config",
        "--endpoint",
        "--http-endpoint",
        "--v",
    ]
    assert ": is a directory" in ended.stderr


def test_the_module_itself_starts_the_program() -> None:
    """`python -m csi_controller.main` is not silent."""
    ended = _run("--version")
    assert ended.stdout.startswith("csi-controller ")


def test_the_core_of_grpc_writes_nothing_into_the_log(tmp_path: pathlib.Path) -> None:
    """A socket that cannot be created is one line of ours."""
    file = tmp_path / "cloud-config"
    file.write_text(GOOD)
    endpoint = f"unix://{tmp_path}/no/such/folder/csi.sock"
    ended = _run(f"--endpoint={endpoint}", f"--cloud-config={file}")
    assert ended.returncode == 2
    assert [line.split(":")[0] for line in ended.stderr.splitlines()] == [
        "csi-controller"
    ]


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "csi_controller.main", *words]
    root = pathlib.Path(main.__file__).parents[1]
    path = os.pathsep.join([str(root), str(root.parent)])
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, env=env
    )
