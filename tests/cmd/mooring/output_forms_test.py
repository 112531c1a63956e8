"""Every command in every form of output, with a cluster that does not answer.

What is printed of real objects is compared by tests/lab/tool/lab_commands_test.py.
"""

import pathlib
from collections.abc import Sequence

import pytest

from mooring.commands import main
from tests.harness.daemons import output_forms

EXAMPLE = pathlib.Path("docs/examples/osdpl/tiny.yaml").absolute()
REACH = ("--kubeconfig", "kubeconfig", "--cloud-config", "cloud.conf")
CLUSTER = ("--kubeconfig", "kubeconfig")
HELP = ("--help",)
"""Of commands that start or change programs."""
ROWS: dict[str, Sequence[str]] = {
    "adopt load-balancer": (
        *("9b1c3d52-6f0e-4c0e-8f55-0d6f4a6f1a11", "--service", "default/web"),
        *REACH,
    ),
    "completion": ("bash",),
    "doctor ccm": REACH,
    "doctor osdpl": CLUSTER,
    "get nodes": CLUSTER,
    "get services": CLUSTER,
    "get volumes": CLUSTER,
    "help": ("plan", "services"),
    "lab build": HELP,
    "lab charts": HELP,
    "lab clean": (),
    "lab demo": (),
    "lab down": HELP,
    "lab env": (),
    "lab image": HELP,
    "lab kubectl": ("get", "nodes"),
    "lab logs": (),
    "lab openstack": ("server", "list"),
    "lab osdpl down": HELP,
    "lab osdpl simulate": HELP,
    "lab osdpl status": (),
    "lab osdpl up": HELP,
    "lab pod-node": HELP,
    "lab server boot": ("one",),
    "lab server delete": ("one",),
    "lab server expose": ("one",),
    "lab server migrate": ("one",),
    "lab server start": ("one",),
    "lab server stop": ("one",),
    "lab simulated-kubelets": HELP,
    "lab status": (),
    "lab storage-node": HELP,
    "lab up": HELP,
    "lab zvirt advance": ("60",),
    "lab zvirt counts": (),
    "lab zvirt lose-tokens": (),
    "lab zvirt rules": (),
    "lab zvirt set": ("vm", "one", "up"),
    "layouts check": (str(EXAMPLE),),
    "layouts list": (),
    "layouts recover": (str(EXAMPLE),),
    "layouts review": (str(EXAMPLE),),
    "migrate dvp": CLUSTER,
    "migrate openstack": CLUSTER,
    "migrate osdpl": CLUSTER,
    "orphans": REACH,
    "plan machines": (*CLUSTER, "--cloud=dvp"),
    "plan nodes": REACH,
    "plan osdpl": CLUSTER,
    "plan routes": REACH,
    "plan services": REACH,
    "plan volumes": CLUSTER,
    "render dvp": (),
    "render openstack": ("--cluster-configuration", str(EXAMPLE)),
    "render osdpl": (str(EXAMPLE), "--output-dir", "rendered"),
    "version": (),
}
"""Arguments of each command, hidden ones included."""
OTHERS_ARGUMENTS = {"lab kubectl", "lab openstack"}
"""They pass `-o json` on to another program."""
COMMANDS = dict(output_forms.leaves(main.commands))


def test_each_command_has_a_row() -> None:
    print("\n".join(sorted(COMMANDS.keys() ^ ROWS.keys())))
    assert ROWS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("words", sorted(ROWS))
def test_each_form_of_output_is_right(
    words: str, nowhere: tuple[str, ...], tmp_path: pathlib.Path
) -> None:
    """Prints a row for each form with exit code and first line."""

    def run(form: output_forms.Form) -> output_forms.Output:
        output = output_forms.run(
            [*words.split(), *ROWS[words]], form, {"HOME": str(tmp_path)}
        )
        first = (output.plain or output.err).strip().partition("\n")[0]
        print(f"{words:22} {output.code} {first[:100]}")
        return output

    wrong = output_forms.problems(COMMANDS[words], run)
    if words in OTHERS_ARGUMENTS:
        wrong.pop("-o json", None)
    assert wrong == {}
