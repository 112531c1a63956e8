"""Every command of `mooring lab` that its README lists, as its user runs it.

The tool is the packaged one. The table of commands and results is printed.
"""

import contextlib
import functools
import json
import pathlib
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence

import jsonschema
import psutil
import pytest
import yaml

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import ccm, csi, discoverer
from lib.lab.kube import control_plane
from lib.lab.openstack import grounds
from lib.lab.run import processes, waiting
from lib.lab.slots import leases
from lib.lab.whole import record, whole
from mooring.commands import main, schemas
from tests.harness import testing
from tests.harness.daemons import lab_tool, output_forms
from tests.harness.docs import pages

LIMIT_S = 900
COMPONENTS = (ccm.NAME, csi.NAME, discoverer.NAME)
STEPS = 14
DEMO = (
    "flavors discovered",
    "Service created: address",
    "Service deleted",
    "claim created: bound",
    "claim expanded: 1Gi to 2Gi",
    "claim deleted",
)
FAILING = "import sys; print('no such flag'); sys.exit(3)\n"


@pytest.fixture(scope="module")
def tool(lease: leases.Lease) -> Iterator[lab_tool.LabTool]:
    """Return the tool; end what it has left."""
    env = lab_tool.environment(lease.apart("c", 400), 120)
    where = places.default(env)
    yield lab_tool.LabTool(where, env, LIMIT_S)
    whole.down(where, grounds.OpenStackGrounds(), testing.shown(), wipe=True)


def folder() -> pathlib.Path:
    """Return the folder with the PEX files."""
    return pexes.beside(pexes.TOOL).parent


@pytest.fixture(scope="module")
def up(tool: lab_tool.LabTool) -> str:
    """Start the lab; return what the tool printed."""
    code, printed = tool.run("up", f"--pex-folder={folder()}")
    assert code == 0
    return printed


def test_a_start_shows_how_far_it_is(tool: lab_tool.LabTool, up: str) -> None:
    """Also without a terminal; what is left is known from the start before."""
    for number in range(STEPS + 1):
        assert f" {number} of {STEPS} steps" in up
    assert "left" not in re.sub(r"Start OpenStack: .*", "", up)
    mine = [processes.find(tool.where, name) for name in processes.names(tool.where)]
    living = [process for process in mine if process is not None]
    size = sum(_memory(process) for process in living)
    files = sum(f.lstat().st_size for f in tool.where.state.rglob("*") if f.is_file())
    print(f"{len(living)} programs: {size / 2**30:.2f} GiB; {files / 1e9:.2f} GB")
    for _ in range(2):
        code, printed = tool.run("up", f"--pex-folder={folder()}")
        assert code == 0
    assert re.search(rf"\d of {STEPS} steps, about \d+ s left", printed)


def _memory(process: psutil.Process) -> int:
    """Return the bytes that a program and its children have for themselves."""
    family = [process, *process.children(recursive=True)]
    size = 0
    for member in family:
        with contextlib.suppress(psutil.Error):
            size += member.memory_full_info().pss
    return size


ROWS: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("status",), 0, r"csi-resizer .*running"),
    (
        ("status", "-o", "wide"),
        0,
        r"cloud-data-discoverer .*/cloud-data-discoverer\.log",
    ),
    (("status", "-o", "name"), 0, r"(?s)program/etcd\n.*node/mooring-lab-3"),
    (("status", "-o", "xml"), 2, "'xml' is not one of"),
    (("env",), 0, "export OS_CLOUD=mooring-lab"),
    (("env", "--unset"), 0, "unset KUBECONFIG"),
    (("env", "--shell=fish"), 0, "set -gx OS_CLOUD 'mooring-lab'"),
    (("kubectl", "--", "get", "nodes", "-o", "name"), 0, "node/mooring-lab-2"),
    (("kubectl", "get", "storageclass", csi.CLASS), 0, "cinder.csi.openstack.org"),
    (("kubectl", "--", "get", "no-such-kind"), 1, "doesn't have a resource type"),
    (("openstack", "--", "server", "list", "-f", "csv"), 0, '"mooring-lab-1","ACTIVE"'),
    (("openstack", "loadbalancer", "list", "-f", "json"), 0, r"\[\]"),
    (("openstack", "--", "server", "show", "none"), 1, "No Server found for none"),
    (("logs",), 0, r"(?s)csi-provisioner\n.*openstack-ccm\n"),
    (("logs", ccm.NAME), 0, '"msg": "starting"'),
    (("logs", "--tail=1", "nova"), 0, r"\A.*\n\Z"),
    (("logs", "lab"), 0, "Start OpenStack: done"),
    (("logs", "openstack-cmc"), 2, "did you mean openstack-ccm?"),
    (("up", "--components=csi"), 2, f"must be one of {', '.join(COMPONENTS)}"),
    (("demo", "--no-such"), 2, "No such option"),
)


@pytest.mark.usefixtures("up")
def test_each_command_has_its_result(tool: lab_tool.LabTool) -> None:
    failures = []
    table = []
    for words, expected, pattern in ROWS:
        code, printed = tool.run(*words)
        is_right = code == expected and re.search(pattern, printed)
        table.append(f"{'ok' if is_right else 'FAILED':6} {code} {' '.join(words)}")
        if not is_right:
            failures.append(words)
    print("\n".join(table))
    assert failures == []


@pytest.mark.usefixtures("up")
def test_the_first_claim_of_the_tutorial_is_bound(tool: lab_tool.LabTool) -> None:
    """Its commands are those of the page."""
    page = pathlib.Path("docs/tutorials/first-cluster.md")
    commands = [c for block in pages.blocks(page) for c in block.commands()]
    own = [shlex.split(c) for c in commands if c.startswith("mooring lab kubectl")]
    printed = ""
    for words in own:
        code, printed = tool.run(*words[2:])
        assert code == 0, printed
    assert re.search(r"^first +Bound +pvc-", printed, re.MULTILINE)
    assert tool.run("kubectl", "--", "delete", "pvc", "first")[0] == 0


@pytest.mark.usefixtures("up")
def test_the_status_is_a_document(tool: lab_tool.LabTool) -> None:
    """Its schema is the published one; JSON and YAML have the same content."""
    printed = {name: tool.run("status", f"-o{name}")[1] for name in ("json", "yaml")}
    document = json.loads(printed["json"])
    jsonschema.validate(document, schemas.of_command("mooring lab status"))
    other = yaml.safe_load(printed["yaml"])
    assert other["programs"] == document["programs"]
    names = {row["program"]: row["state"] for row in document["programs"]}
    assert {*COMPONENTS, *csi.SIDECARS, "octavia"} <= names.keys()
    assert set(names.values()) == {"Running"}
    nodes = {node["node"]: node["server"] for node in document["nodes"]}
    assert nodes == dict.fromkeys(record.NAMES, "ACTIVE")


@pytest.mark.usefixtures("up")
def listed(tool: lab_tool.LabTool) -> dict[str, tuple[str, ...]]:
    """Return the commands that print objects of this lab, with their arguments."""
    lab = record.read(tool.where)
    assert lab is not None
    reach = (
        f"--kubeconfig={control_plane.admin_kubeconfig(tool.where)}",
        f"--cloud-config={tool.where.state / 'cloud.conf'}",
    )
    named = (*reach, "--cluster-name=mooring-lab")
    return {
        "doctor ccm": reach,
        "get nodes": reach[:1],
        "get services": reach[:1],
        "get volumes": reach[:1],
        "lab status": (),
        "orphans": named,
        "plan nodes": reach,
        "plan routes": (*reach, f"--cluster-cidr={ccm.POD_CIDR}"),
        "plan services": named,
        "plan volumes": reach[:1],
    }


def test_objects_are_right_in_each_form_of_output(tool: lab_tool.LabTool) -> None:
    """Terminals of 80 and 200 columns, a pipe, NO_COLOR and JSON; prints each."""
    commands = dict(output_forms.leaves(main.commands))
    env = {**tool.env, "HOME": str(tool.where.state)}
    env.pop("COLUMNS")

    def run(command: Sequence[str], form: output_forms.Form) -> output_forms.Output:
        output = output_forms.run(command, form, env)
        print(f"$ {command} {form}: {output.code}\n{output.plain}{output.err}")
        return output

    wrong = {
        words: output_forms.problems(
            commands[words], functools.partial(run, [*words.split(), *arguments])
        )
        for words, arguments in listed(tool).items()
    }
    assert {words: problems for words, problems in wrong.items() if problems} == {}


def test_a_daemon_that_is_killed_is_restarted(tool: lab_tool.LabTool) -> None:
    """As a kubelet does: with its command and variables, so that it serves again."""
    where, name = tool.where, discoverer.NAME
    killed = processes.find(where, name)
    assert killed is not None
    killed.kill()

    def is_restarted() -> bool:
        process = processes.find(where, name)
        return process is not None and process != killed

    waiting.until(f"{name} is restarted", is_restarted)
    waiting.until(f"{name} serves", lambda: discoverer.at(where).serves())
    log = (where.log / "simulated-kubelets.log").read_text()
    assert f"{name} has exited and is restarted" in log


@pytest.mark.usefixtures("up")
def test_variables_are_for_a_shell(tool: lab_tool.LabTool) -> None:
    """kubectl, started by the user, finds the cluster."""
    kubectl = programs.path(tool.where, "kubectl")
    script = f'eval "$({tool.shown("env")})" && exec "$0" get nodes -o name'
    done = subprocess.run(
        ["sh", "-c", script, str(kubectl)],
        env=tool.env,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert done.stdout.split() == [f"node/{name}" for name in record.NAMES]


@pytest.mark.usefixtures("up")
def test_a_log_is_followed_until_ctrl_c(tool: lab_tool.LabTool) -> None:
    log = tool.where.log / "simulated-kubelets.log"
    with subprocess.Popen(
        [*tool.command("logs", "-f", "--tail=0", log.stem)],
        env=tool.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        # What is added before the tool has opened the file is not printed.
        waiting.until("the log is open", lambda: _has_open(process.pid, log))
        with log.open("a") as out:
            out.write("a line of the test\n")
        assert process.stdout.readline() == "a line of the test\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=900)
    assert (process.returncode, errors) == (130, "Interrupted.\n")


def _has_open(pid: int, file: pathlib.Path) -> bool:
    with contextlib.suppress(psutil.Error):
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        opened = [each.path for member in family for each in member.open_files()]
        return str(file) in opened
    return False


@pytest.mark.usefixtures("up")
def test_the_demo_shows_all_components(tool: lab_tool.LabTool) -> None:
    """A Service has an address, a claim is bound and expanded, flavors are found."""
    code, printed = tool.run("demo")
    _, _, shown = printed.partition(", ".join(COMPONENTS))
    rows = [line.strip() for line in shown.partition("Observed")[2].splitlines()]
    for step in DEMO:
        (row,) = (line for line in rows if line.startswith(step))
        assert re.search(r" \d+\.\d {2,}\S", row), row
    assert re.search(r"flavors discovered .* m1\.tiny, ", shown)
    assert re.search(r"Service created: address .* \d+\.\d+\.\d+\.\d+, load", shown)
    assert code == 0


@pytest.mark.usefixtures("up")
def test_components_are_chosen(tool: lab_tool.LabTool) -> None:
    """Those that are not requested any more are stopped; a later start keeps that."""
    assert (
        tool.run("up", f"--pex-folder={folder()}", f"--components={ccm.NAME}")[0] == 0
    )
    assert _running(tool) == {ccm.NAME}
    assert tool.run("up", f"--pex-folder={folder()}")[0] == 0
    assert _running(tool) == {ccm.NAME}
    code, printed = tool.run("status", "-o", "name")
    assert (code, "program/csi-controller" in printed) == (0, False)
    names = ",".join(COMPONENTS)
    assert tool.run("up", f"--pex-folder={folder()}", f"--components={names}")[0] == 0
    assert _running(tool) == {*COMPONENTS, *csi.SIDECARS}


def _running(tool: lab_tool.LabTool) -> set[str]:
    names = (*COMPONENTS, *csi.SIDECARS)
    return {name for name in names if processes.find(tool.where, name) is not None}


@pytest.mark.usefixtures("up")
def test_a_step_that_fails_shows_its_log(
    tool: lab_tool.LabTool, tmp_path: pathlib.Path
) -> None:
    """The rest of the lab keeps running."""
    for name in (*COMPONENTS, pexes.TOOL):
        (tmp_path / f"{name}.pex").symlink_to(folder() / f"{name}.pex")
    broken = tmp_path / f"{discoverer.NAME}.pex"
    broken.unlink()
    broken.write_text(FAILING)
    code, printed = tool.run("up", f"--pex-folder={tmp_path}")
    log = tool.where.log / f"{discoverer.NAME}.log"
    assert code == 1
    assert re.search(
        rf"Start {discoverer.NAME}: failed in .*\n.*    log: {re.escape(str(log))}\n",
        printed,
    )
    assert f"Error: {discoverer.NAME} ended by itself" in printed
    assert log.read_text().endswith("no such flag\n")
    assert ccm.NAME in _running(tool)
    assert tool.run("up", f"--pex-folder={folder()}")[0] == 0


def test_a_full_disk_is_reported_with_the_log(
    tool: lab_tool.LabTool, tmp_path: pathlib.Path
) -> None:
    """The lab's folder is a file system of 4 MB."""
    full = f'mount -t tmpfs -o size=4m lab {tmp_path} && exec "$@"'
    words = [*("unshare", "--mount", "--", "sh", "-c", full, "sh")]
    words += tool.command("up", f"--pex-folder={folder()}")
    done = subprocess.run(
        words,
        env={**tool.env, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    print(done.stderr)
    if "unshare failed" in done.stderr:
        pytest.skip("no permission to mount a file system")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search(r": failed in .*\n.*    log: .*/mooring/lab/log/", done.stderr)
    # Of two steps the one that fails first is reported.
    either = r"No space left on device|has \d+ MB left, but OpenStack's data needs"
    assert re.search(rf"Error: .*({either})", done.stderr)


@pytest.mark.usefixtures("up")
def test_nothing_is_left_after_the_end(tool: lab_tool.LabTool) -> None:
    assert tool.run("down", "--wipe")[0] == 0
    assert processes.names(tool.where) == ()
    assert not tool.where.state.exists()
    for words in (("status",), ("env",), ("kubectl", "get", "nodes"), ("demo",)):
        code, printed = tool.run(*words)
        assert (code, "there is no lab here" in printed) == (1, True), words
