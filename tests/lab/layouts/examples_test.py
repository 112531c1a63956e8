"""docs/examples/layouts is applied as docs/layouts.md describes it."""

import json
import pathlib

from tests.harness.daemons import tool
from tests.harness.layouts import changes, objects, roots

EXAMPLE = pathlib.Path("docs/examples/layouts/standard.tfvars.json")
LAB = {
    "masterNodeGroup.instanceClass.flavorName": "m1.tiny",
    "masterNodeGroup.instanceClass.imageName": "tiny",
    "masterNodeGroup.instanceClass.rootDiskSize": 1,
    "masterNodeGroup.instanceClass.etcdDiskSizeGb": 1,
    "masterNodeGroup.volumeTypeMap": {"az1": "fast"},
    "nodeGroups.0.instanceClass.flavorName": "m1.tiny",
    "nodeGroups.0.instanceClass.imageName": "tiny",
    "nodeGroups.0.instanceClass.rootDiskSize": 1,
    "nodeGroups.0.volumeTypeMap": {"az1": "fast"},
}
"""Names and sizes of the lab, in place of the reader's."""
ROOTS = (roots.BASE, roots.master(0), roots.static("front", 0))


def test_the_example_is_applied_without_a_password_in_a_file(
    cluster: roots.MakeCluster, tmp_path: pathlib.Path
) -> None:
    mine, user = cluster("Standard")
    example = json.loads(EXAMPLE.read_text())
    provider = dict(mine.document["provider"])
    password = provider.pop("password")
    document = changes.changed(example["providerClusterConfiguration"], LAB)
    mine = mine.with_environment({"OS_PASSWORD": password})
    mine = mine.with_document({**document, "provider": provider})
    before = objects.take(user.connection)
    file = tmp_path / "example.tfvars.json"
    values = {**example, "providerClusterConfiguration": mine.document}
    file.write_text(json.dumps(values))
    words = ("layouts", "check", str(file), "--online")

    checked = tool.mooring(*words, variables={"OS_PASSWORD": password})
    for root in ROOTS:
        mine.apply(root)

    assert checked.returncode == 0, checked.stderr
    assert [mine.plan(root) for root in ROOTS] == [{}] * len(ROOTS)
    for root in ROOTS:
        assert f'"{password}"' not in json.dumps(mine.plan_json(root))
        assert f'"{password}"' not in mine.state(root).read_text()
    mine.destroy(*ROOTS)
    assert objects.take(user.connection) == before
