"""The command line of `mooring`, run as its users run it."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.run import processes
from lib.lab.slots import slots
from lib.lab.whole import record

RUN = "import sys; from mooring.commands import main; main.main()"


def environment(home: pathlib.Path) -> dict[str, str]:
    """Return a user with an empty home and a lab of its own."""
    path = os.pathsep.join(folder for folder in sys.path if folder)
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": path,
        "MOORING_LAB_PORT_BASE": "21900",
        "COLUMNS": "100",
    }


def mooring(
    home: pathlib.Path, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env={**environment(home), **more},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_help_names_the_commands(tmp_path: pathlib.Path) -> None:
    """Everything a user can do is listed, and nothing that is not for users."""
    result = mooring(tmp_path, "lab", "--help")
    assert result.returncode == 0
    for command in (
        "build",
        "charts",
        "clean",
        "demo",
        "down",
        "env",
        "kubectl",
        "logs",
        "openstack",
        "server",
        "status",
        "up",
    ):
        assert f"\n  {command} " in result.stdout
    assert "-kubelets" not in result.stdout


def test_version_names_the_program(tmp_path: pathlib.Path) -> None:
    """It says "mooring" however the program was started."""
    result = mooring(tmp_path, "--version")
    assert (result.returncode, result.stdout.split()[0]) == (0, "mooring")


@pytest.mark.parametrize("words", [("lab", "up", "--no-such"), ("lab", "no-such")])
def test_unknown_words_are_refused(tmp_path: pathlib.Path, words: tuple[str]) -> None:
    """Exit code 2, as for every wrong command line."""
    result = mooring(tmp_path, *words)
    assert result.returncode == 2
    assert "No such" in result.stderr


def test_help_does_not_load_the_clients(tmp_path: pathlib.Path) -> None:
    """Looking something up is quick: no cloud or cluster client is imported."""
    check = (
        "import sys; from mooring.commands import main;"
        "print([n for n in ('openstack', 'kubernetes') if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", check],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "[]\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("lab", "status"), "there is no lab here; `mooring lab up` starts one"),
        (("lab", "demo"), "there is no lab here; `mooring lab up` starts one"),
        (("lab", "env"), "there is no lab here; `mooring lab up` starts one"),
        (("lab", "kubectl", "--", "get", "nodes"), "there is no lab here"),
        (("lab", "openstack", "server", "list"), "there is no lab here"),
        (("lab", "logs"), "/log: no files; `mooring lab up` starts a lab"),
        (("lab", "logs", "-f", "etcd"), "/log: no files; `mooring lab up` starts"),
        (("lab", "server", "stop", "a"), "there is no lab here"),
        (("lab", "build"), "openstack-ccm.pex is missing"),
        (("lab", "up"), "openstack-ccm.pex is missing"),
        (("lab", "image"), "not in a checkout"),
        (("lab", "image", "csi-node", "--output=new"), "not in a checkout"),
    ],
)
def test_what_is_missing_is_one_sentence(
    tmp_path: pathlib.Path, words: tuple[str, ...], sentence: str
) -> None:
    """Exit code 1, a sentence on standard error, no traceback."""
    result = mooring(tmp_path, *words)
    assert result.returncode == 1
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("up", "--components", "openstack-cmc"),
            '--components: unsupported value "openstack-cmc": must be one of'
            " openstack-ccm, csi-controller, cloud-data-discoverer:"
            " did you mean openstack-ccm?",
        ),
        (
            ("up", "--components", "openstack-ccm,"),
            "--components: not set: must be one of openstack-ccm, csi-controller,",
        ),
        (
            ("up", "--components=csi-controller", "--os-cloud=silent"),
            '--components: unsupported value "csi-controller": must be one of'
            " openstack-ccm",
        ),
        (
            ("logs", "ectd"),
            'PROGRAM: unsupported value "ectd": must be one of etcd, nova:'
            " did you mean etcd?",
        ),
        (("logs", "--tail=-1", "etcd"), "-1 is not in the range x>=0"),
        (("env", "--shell=csh"), "'csh' is not one of 'sh', 'fish'"),
    ],
)
def test_bad_input_of_the_lab_has_exit_code_2(
    tmp_path: pathlib.Path, words: tuple[str, ...], sentence: str
) -> None:
    """The message names the field, the value, and what is valid."""
    where = places.default(environment(tmp_path))
    where.log.mkdir(parents=True)
    for program in ("etcd", "nova"):
        (where.log / f"{program}.log").touch()
    result = mooring(tmp_path, "lab", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_variables_can_be_removed_without_a_lab(tmp_path: pathlib.Path) -> None:
    """Such as after `lab down --wipe`; nothing is created."""
    result = mooring(tmp_path, "lab", "env", "--unset")
    names = ("KUBECONFIG", "OS_CLOUD", "OS_CLIENT_CONFIG_FILE")
    assert result.returncode == 0
    assert result.stdout.splitlines() == [f"unset {name}" for name in names]
    assert list(tmp_path.iterdir()) == []


CLIENT = """#!/bin/sh
echo "KUBECONFIG=$KUBECONFIG OS_CLOUD=$OS_CLOUD"
echo "$@"
exit 7
"""


@pytest.fixture()
def existing(tmp_path: pathlib.Path) -> dict[str, str]:
    """A lab with an existing cluster and cloud, and clients in PATH.

    The path of the kubeconfig has characters that are special in a shell.
    """
    home = tmp_path / 'it\'s a "$HOME" `home`'
    home.mkdir()
    kept = record.Record(kubeconfig=str(home / "config"), existing_cloud="my $cloud")
    record.write(places.default(environment(home)), kept)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("kubectl", "openstack"):
        (folder / name).write_text(CLIENT)
        (folder / name).chmod(0o755)
    return {"HOME": str(home), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("kubectl", "--", "get", "nodes", "-f"), "get nodes -f"),
        (("kubectl", "get", "--all-namespaces", "pods"), "get --all-namespaces pods"),
        (("openstack", "--", "--debug", "server", "list"), "--debug server list"),
        (("openstack", "server", "list"), "server list"),
    ],
)
def test_clients_have_arguments_variables_and_the_exit_code(
    tmp_path: pathlib.Path,
    existing: dict[str, str],
    words: tuple[str, ...],
    arguments: str,
) -> None:
    """Those of PATH are started where cluster or cloud are not the lab's own."""
    result = mooring(tmp_path, "lab", *words, **existing)
    variables, passed = result.stdout.splitlines()
    assert (result.returncode, passed) == (7, arguments)
    if words[0] == "kubectl":
        assert f"KUBECONFIG={existing['HOME']}/config " in variables
    else:
        assert variables.endswith("OS_CLOUD=my $cloud")


@pytest.mark.parametrize("name", ["kubectl", "openstack"])
def test_a_missing_client_is_one_sentence(
    tmp_path: pathlib.Path, existing: dict[str, str], name: str
) -> None:
    existing["PATH"] = str(tmp_path)
    result = mooring(tmp_path, "lab", name, "get", **existing)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"Error: {name}: not found in PATH" in result.stderr


def test_variables_are_quoted_for_a_shell(
    tmp_path: pathlib.Path, existing: dict[str, str]
) -> None:
    """Evaluated by a shell they have the exact values; and are removed again."""
    exported = mooring(tmp_path, "lab", "env", **existing)
    removed = mooring(tmp_path, "lab", "env", "--unset", **existing)
    show = """printf '%s|%s\\n' "$KUBECONFIG" "$OS_CLOUD" """
    script = f"{exported.stdout}\n{show}\n{removed.stdout}\n{show}\n"
    done = subprocess.run(
        ["sh", "-euc", script],
        env={"HOME": "/wrong"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    path = f"{existing['HOME']}/config"
    assert done.stdout.splitlines()[:1] == [f"{path}|my $cloud"], done.stderr
    assert "KUBECONFIG" in done.stderr, "it is not set any more"


def test_a_bad_port_base_is_one_sentence(tmp_path: pathlib.Path) -> None:
    """A wrong variable is told by its name."""
    result = mooring(tmp_path, "lab", "status", MOORING_LAB_PORT_BASE="many")
    assert result.returncode == 1
    assert "MOORING_LAB_PORT_BASE must be a number" in result.stderr


def test_clean_removes_nothing_without_yes(tmp_path: pathlib.Path) -> None:
    """First it only shows what the caches weigh."""
    part = tmp_path / ".cache" / "mooring" / "go"
    part.mkdir(parents=True)
    (part / "file").write_bytes(bytes(5000))
    result = mooring(tmp_path, "lab", "clean")
    assert result.returncode == 0
    assert "go" in result.stdout
    assert "--yes" in result.stdout
    assert part.is_dir()
    assert mooring(tmp_path, "lab", "clean", "--yes").returncode == 0
    assert not part.exists()


def test_clean_spares_what_a_running_lab_needs(tmp_path: pathlib.Path) -> None:
    """The programs of a running lab are not removed below it."""
    where = places.default(environment(tmp_path))
    where.cache.mkdir(parents=True)
    processes.start(where, "etcd", ["sleep", "60"])
    try:
        result = mooring(tmp_path, "lab", "clean", "--yes")
        assert result.returncode == 1
        assert "lab down" in result.stderr
        assert where.cache.is_dir()
    finally:
        processes.stop(where, ["etcd"])


def test_down_ends_everything_and_may_be_repeated(tmp_path: pathlib.Path) -> None:
    """Whatever has a pid file is ended; --wipe leaves no state behind."""
    where = places.default(environment(tmp_path))
    processes.start(where, "openstack-ccm", ["sleep", "60"])
    for _ in range(2):
        result = mooring(tmp_path, "lab", "down", "--wipe")
        assert result.returncode == 0, result.stderr
        assert processes.find(where, "openstack-ccm") is None
        assert not where.state.exists()


CLOUDS = """
clouds:
  silent:
    auth: {{auth_url: "http://127.0.0.1:{port}/v3", username: u, password: p,
           project_name: p, user_domain_id: default, project_domain_id: default}}
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: c, user: {{token: t}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
"""


@pytest.fixture()
def silent() -> Iterator[int]:
    """Yield the port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_what_up_began_and_exits_130(
    tmp_path: pathlib.Path, silent: int, number: signal.Signals
) -> None:
    """Pressed twice while ./pants packages and a cloud is silent: nothing is left."""
    (tmp_path / "clouds.yaml").write_text(CLOUDS.format(port=silent))
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(port=silent))
    (tmp_path / "pants.toml").touch()
    launcher = tmp_path / "pants"
    launcher.write_text("#!/bin/sh\necho $$ > pid\nexec sleep 60\n")
    launcher.chmod(0o755)
    words = ["lab", "up", "--kubeconfig", "kubeconfig", "--os-cloud", "silent"]
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        env={**environment(tmp_path), "OS_CLIENT_CONFIG_FILE": "clouds.yaml"},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = tmp_path / "pid"
    end = time.monotonic() + 30
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.05)
    child.send_signal(number)
    time.sleep(0.05)
    child.send_signal(number)
    _, output = child.communicate(timeout=900)
    assert child.returncode == 130, output
    assert "Traceback" not in output
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_full_disk_is_one_sentence_and_the_log_is_shown(
    tmp_path: pathlib.Path, silent: int
) -> None:
    """The kernel reports the error: the file that is written is /dev/full."""
    (tmp_path / "clouds.yaml").write_text(CLOUDS.format(port=silent))
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(port=silent))
    for name in ("openstack-ccm", "mooring"):
        (tmp_path / f"{name}.pex").write_bytes(bytes(5000))
    where = places.default(environment(tmp_path))
    (where.state / "bin").mkdir(parents=True)
    part = where.state / "bin" / ".openstack-ccm.pex.new"
    part.symlink_to("/dev/full")
    words = ("up", "--kubeconfig=kubeconfig", "--os-cloud=silent", "--pex-folder=.")
    file = {"OS_CLIENT_CONFIG_FILE": "clouds.yaml"}
    result = mooring(tmp_path, "lab", *words, **file)
    print(result.stderr)
    log = where.log / "lab.log"
    assert result.returncode == 1
    assert re.search("^Error: .*No space left on device$", result.stderr, re.MULTILINE)
    assert "Package openstack-ccm, mooring: failed in " in result.stderr
    assert f"    log: {log}" in result.stderr
    assert "failed: OSError: [Errno 28]" in log.read_text()
    assert "Traceback" not in result.stderr


def test_the_labs_of_tests_are_ended_but_for_those_in_use(
    tmp_path: pathlib.Path,
) -> None:
    """A slot in which nothing runs, one that a process holds, and none at all."""
    result = mooring(tmp_path, "lab", "down", "--tests")
    assert (result.returncode, "Test slot" in result.stdout) == (0, False)
    root = tmp_path / ".local/state/mooring/tests"
    held = slots.attempt(root, 1)
    assert held is not None
    (root / "0" / "lab").mkdir(parents=True)
    (root / "0" / "used").touch()

    result = mooring(tmp_path, "lab", "down", "--tests")

    held.release()
    assert result.returncode == 0
    assert "Test slot 0: ended." in result.stdout
    assert "Test slot 1: in use by a test process, not stopped." in result.stdout
    assert not (root / "0" / "lab").exists()


def test_a_program_that_does_not_run_has_a_remedy(tmp_path: pathlib.Path) -> None:
    """`lab status` prints which command shows why, and which starts it again."""
    record.write(places.default(environment(tmp_path)), record.Record())
    result = mooring(tmp_path, "lab", "status")
    assert result.returncode == 1
    for program in ("kube-apiserver", "octavia", "openstack-ccm"):
        assert (
            f"{program} does not run: `mooring lab logs {program}` shows why,"
            " `mooring lab up` starts it again\n"
        ) in result.stderr
