import os
import pathlib

import pytest
import yaml

from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.run import processes

WHERE = places.Places(pathlib.Path("/c"), pathlib.Path("/s"), 21900)


def test_the_command_line_is_the_reference_s_own() -> None:
    """A user of the reference could have typed it, but for the port."""
    words = ccm.arguments(WHERE, pathlib.Path("/k"), pathlib.Path("/c.conf"), ["--x"])
    assert words == (
        "--cloud-provider=openstack",
        "--cloud-config=/c.conf",
        "--kubeconfig=/k",
        "--bind-address=127.0.0.1",
        f"--secure-port={WHERE.port(ccm.PORT)}",
        "--cluster-name=mooring-lab",
        "--leader-elect=true",
        "--v=2",
        "--x",
    )


def test_the_manifest_gives_what_the_node_controllers_need() -> None:
    """Nodes may be deleted and patched, and nothing else of weight is allowed."""
    documents = list(yaml.safe_load_all(ccm.manifest()))
    kinds = [document["kind"] for document in documents]
    cluster_wide = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]
    assert kinds == [*cluster_wide, "Role", "RoleBinding"]
    allowed = {
        (resource, verb)
        for rule in documents[1]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert {
        ("nodes", "delete"),
        ("nodes", "patch"),
        ("nodes/status", "patch"),
    } <= allowed
    assert not {
        permission
        for permission in allowed
        if permission[0] in ("secrets", "*") or permission[1] == "*"
    }


def test_the_account_is_the_manifest_s() -> None:
    """The token is asked for the ServiceAccount that the manifest makes and binds."""
    account, _, binding, _, narrow = yaml.safe_load_all(ccm.manifest())
    meta = account["metadata"]
    assert (meta["namespace"], meta["name"]) == ccm.ACCOUNT
    for bound in (binding, narrow):
        assert bound["subjects"][0]["name"] == meta["name"]


@pytest.mark.parametrize("newer", [True, False])
def test_only_a_program_older_than_its_file_is_replaced(
    tmp_path: pathlib.Path, newer: bool
) -> None:
    """A second `up` restarts what was packaged anew, and leaves the rest alone."""
    where = places.Places(tmp_path, tmp_path / "state", 21900)
    file = tmp_path / "x.pex"
    file.touch()
    processes.start(where, "x", ["sleep", "60"])
    try:
        process = processes.find(where, "x")
        assert process is not None
        began = process.create_time()
        os.utime(file, (began, began + 10 if newer else began - 10))
        ccm.replace_outdated(where, "x", file)
        assert (processes.find(where, "x") is None) is newer
    finally:
        processes.stop(where, ["x"])
