"""What the roots would create; a lab test compares it with plans of OpenTofu."""

from lib.layouts.openstack import layout_objects
from tests.harness.layouts import inputs


def test_each_master_and_node_has_a_root_of_its_own() -> None:
    document = inputs.document(
        "SimpleWithInternalNetwork",
        inputs.NO_CLOUD,
        masters={"replicas": 2},
        groups=[inputs.group(additionalNetworks=["dmz"])],
    )

    planned = layout_objects.planned(document, "prod")

    assert [(each.root, each.kind, each.name) for each in planned] == [
        ("base-infrastructure", "key pair", "prod"),
        *(
            (f"master-node prod-master-{index}", kind, name)
            for index in (0, 1)
            for kind, name in (
                ("port", f"prod-master-{index}"),
                ("volume", f"prod-kubernetes-data-{index}"),
                ("server", f"prod-master-{index}"),
                ("floating IP", ""),
            )
        ),
        ("static-node prod-front-0", "port", "prod-front-0"),
        ("static-node prod-front-0", "port", "prod-front-0"),
        ("static-node prod-front-0", "server", "prod-front-0"),
    ]
