"""What a cycle does to a cluster; each of its steps succeeds or fails by itself."""

import base64
import copy
import dataclasses
import json
from typing import Any

import pytest

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.discovery import model, observe, storage_classes
from lib.discovery.model import DiscoveryStep
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.kube.fake import calls

DOWN = errors.Unavailable("down", operation="list")
REFUSED = kube_errors.Forbidden("no", operation="x")


def written(ground: Any) -> list[tuple[str, str]]:
    return [(c.verb, c.resource) for c in ground.api.calls if c.is_write]


def test_a_first_cycle_makes_everything(ground: Any) -> None:
    ground.persistent("pvc-1")
    process = ground.process()
    assert process.cycle() == {}
    (stored,) = ground.api.all(resources.INSTANCE_TYPES_CATALOGS)
    assert stored["instanceTypes"] == [
        {"name": "m1.small", "cpu": "2", "memory": "2Gi", "rootDisk": "20Gi"},
        {"name": "большой", "cpu": "4", "memory": "1536Mi", "rootDisk": "0"},
    ]
    assert ground.secret() == ground.cloud.document
    assert process.orphans() == {"2"}
    assert sorted(ground.classes()) == ["fast", "ssd-r1"]
    assert written(ground) == [
        ("create", "instancetypescatalogs"),
        ("create", "secrets"),
        ("create", "storageclasses"),
        ("create", "storageclasses"),
    ]


def test_a_second_cycle_writes_nothing_and_reads_the_cloud_once(ground: Any) -> None:
    process = ground.process()
    process.cycle()
    ground.api.calls.clear()
    ground.cloud.reads.clear()
    assert process.cycle() == {}
    assert written(ground) == []
    assert len(ground.cloud.reads) == 1
    assert {c.timeout_s for c in ground.api.calls} == {observe.TIMEOUT_S}


def test_what_others_put_into_our_objects_stays(ground: Any) -> None:
    """Metadata is kept; the data of the Secret is replaced as a whole."""
    process = ground.process()
    process.cycle()
    for kind in (resources.INSTANCE_TYPES_CATALOGS, resources.SECRETS):
        (original,) = ground.api.all(kind)
        changed = copy.deepcopy(original)
        changed["metadata"]["labels"] = {"theirs": "1"}
        ground.api.put(kind, changed)
    ground.cloud.document["images"] = ["debian"]
    ground.cloud.instance_types = ground.cloud.instance_types[:1]
    assert process.cycle() == {}
    (stored,) = ground.api.all(resources.INSTANCE_TYPES_CATALOGS)
    (secret,) = ground.api.all(resources.SECRETS)
    assert (
        stored["metadata"]["labels"] == secret["metadata"]["labels"] == {"theirs": "1"}
    )
    assert len(stored["instanceTypes"]) == 1
    assert ground.secret()["images"] == ["debian"]


@pytest.mark.parametrize("part", list(CatalogPart), ids=lambda part: part.value)
def test_one_part_of_the_cloud_that_fails_hides_no_other(
    ground: Any, part: CatalogPart
) -> None:
    """The failed step keeps what it had published; the four others go on."""
    process = ground.process()
    process.cycle()
    before = ground.secret()
    ground.cloud.faults[part] = DOWN
    ground.cloud.document["images"] = ["new"]
    ground.cloud.marked = {}
    ground.cloud.storage_types += (catalog.StorageType("new"),)
    (step,) = (step for step, needs in model.PARTS.items() if needs is part)
    for _ in range(3):
        assert set(process.cycle()) == {step.value}
    failing = {
        s.value
        for s in DiscoveryStep
        if process.value("mooring_discovery_step_error", step=s.value)
    }
    assert failing == {step.value}
    changed = part is not CatalogPart.DOCUMENT
    assert (ground.secret() != before) is changed
    assert (process.orphans() == set()) is (part is not CatalogPart.VOLUMES)
    assert ("new" in ground.classes()) is (part is not CatalogPart.STORAGE_TYPES)
    ground.cloud.faults.clear()
    assert process.cycle() == {}
    assert process.value("mooring_discovery_step_error", step=step.value) == 0
    assert ground.secret()["images"] == ["new"]


REFERENCE = [
    (CatalogPart.INSTANCE_TYPES, "instance_types"),
    (CatalogPart.DOCUMENT, "discovery_data"),
    (CatalogPart.VOLUMES, "disks_meta"),
]


@pytest.mark.parametrize(("part", "label"), REFERENCE)
def test_the_series_of_the_reference_tell_of_cloud_reads(
    ground: Any, part: CatalogPart, label: str
) -> None:
    process = ground.process()
    ground.cloud.faults[part] = DOWN
    process.cycle()
    for _, other in REFERENCE:
        assert process.value(
            "cloud_data_discovery_cloud_request_error", type=other
        ) == (other == label)
    assert process.value("cloud_data_discovery_update_resource_error") == 0
    ground.cloud.faults.clear()
    process.cycle()
    assert process.value("cloud_data_discovery_cloud_request_error", type=label) == 0


WRITES = [
    (DiscoveryStep.INSTANCE_TYPES, "create", "instancetypescatalogs"),
    (DiscoveryStep.DISCOVERY_DATA, "create", "secrets"),
    (DiscoveryStep.STORAGE_CLASSES, "create", "storageclasses"),
    (DiscoveryStep.INSTANCE_TYPES, "get", "instancetypescatalogs"),
    (DiscoveryStep.DISCOVERY_DATA, "get", "secrets"),
    (DiscoveryStep.ORPHANED_DISKS, "list", "persistentvolumes"),
    (DiscoveryStep.STORAGE_CLASSES, "list", "storageclasses"),
]


@pytest.mark.parametrize(("step", "verb", "resource"), WRITES)
def test_a_refusal_of_the_api_server_is_told_and_healed(
    ground: Any, step: DiscoveryStep, verb: str, resource: str
) -> None:
    """A later success of another step does not hide it; health comes back by itself."""
    process = ground.process()
    ground.api.faults.append(calls.Fault(REFUSED, verb, resource))
    assert set(process.cycle()) == {step.value}
    assert process.value("cloud_data_discovery_update_resource_error") == 1
    assert process.value("mooring_discovery_step_error", step=step.value) == 1
    assert (
        process.value("cloud_data_discovery_cloud_request_error", type="discovery_data")
        == 0
    )
    ground.clock.pass_by(400)
    assert process.discovery_metrics.refused_for_s() == 400
    assert process.cycle() == {}
    assert process.value("cloud_data_discovery_update_resource_error") == 0
    assert process.discovery_metrics.refused_for_s() == 0


def test_a_failed_step_is_tried_again_alone(ground: Any) -> None:
    """After 3 s, then after ever longer times; the others wait for their cycle."""
    process = ground.process()
    ground.cloud.faults[CatalogPart.DOCUMENT] = DOWN
    process.cycle()
    ground.cloud.reads.clear()
    ground.clock.pass_by(2.9)
    assert process.due() == {}
    ground.clock.pass_by(0.2)
    assert set(process.due()) == {"discovery_data"}
    assert ground.cloud.reads[-1] == {CatalogPart.DOCUMENT}
    ground.clock.pass_by(6.1)
    ground.cloud.faults.clear()
    assert process.due() == {}
    assert ground.secret() is not None


def test_an_object_that_can_not_be_read_fails_its_own_step(ground: Any) -> None:
    ground.api.put(
        resources.PERSISTENT_VOLUMES,
        {"metadata": {"name": "odd"}, "spec": {"csi": "no object"}},
    )
    process = ground.process()
    assert set(process.cycle()) == {"orphaned_disks"}
    assert ground.secret() is not None


def test_the_installers_document_is_used_where_there_is_one(ground: Any) -> None:
    ground.settings = dataclasses.replace(
        ground.settings, module_config={"zones": ["from-module"]}
    )
    process = ground.process()
    process.cycle()
    assert ground.secret()["zones"] == ["from-module"]
    text = json.dumps({"zones": ["az7"], "layout": "Standard"}).encode()
    ground.api.put(
        resources.SECRETS,
        {
            "metadata": {"name": model.INPUT_SECRET, "namespace": model.NAMESPACE},
            "data": {model.INPUT_KEY: base64.b64encode(text).decode()},
        },
    )
    process.cycle()
    assert ground.secret()["zones"] == ["az7"]


def test_an_installers_document_that_is_no_json_replaces_nothing(ground: Any) -> None:
    process = ground.process()
    process.cycle()
    before = ground.secret()
    ground.api.put(
        resources.SECRETS,
        {
            "metadata": {"name": model.INPUT_SECRET, "namespace": model.NAMESPACE},
            "data": {model.INPUT_KEY: base64.b64encode(b"zones: [").decode()},
        },
    )
    failed = process.cycle()
    assert "must be a JSON object" in str(failed["discovery_data"])
    assert ground.secret() == before
    assert process.value("cloud_data_discovery_update_resource_error") == 1


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("images", [], "images: invalid value: must be a list of at least 1 item"),
        ("flavors", [], "flavors: invalid value: must be a list of at least 1 item"),
        ("zones", [], "zones: invalid value: must be a list of at least 1 item"),
        (
            "mainNetwork",
            "",
            'mainNetwork: invalid value "": must be a text of at least 1 character',
        ),
        (
            "defaultImageName",
            "",
            'defaultImageName: invalid value "": must be a text of at least 1 character'
            " (from instances.imageName of MODULE_CONFIG, the value moduleConfig of the"
            " chart)",
        ),
        ("additionalNetworks", None, "additionalNetworks"),
        ("additionalNetworks", [], "implausible"),
        ("additionalSecurityGroups", [], "implausible"),
    ],
)
def test_what_is_invalid_or_empty_never_replaces_what_is_valid(
    ground: Any, field: str, value: object, expected: str
) -> None:
    process = ground.process()
    process.cycle()
    before = ground.secret()
    ground.cloud.document[field] = value
    ground.api.calls.clear()
    failed = process.cycle()
    assert expected in str(failed["discovery_data"])
    assert ground.secret() == before
    assert written(ground) == []
    assert process.value("mooring_discovery_step_error", step="discovery_data") == 1
    # It is for a person to put right: a restart of the process would not help.
    ground.clock.pass_by(4000)
    assert process.discovery_metrics.refused_for_s() == 0


def test_an_empty_list_of_security_groups_is_fine_where_there_never_were_any(
    ground: Any,
) -> None:
    ground.cloud.document["additionalSecurityGroups"] = []
    assert ground.process().cycle() == {}
    assert ground.secret()["additionalSecurityGroups"] == []


def test_no_instance_types_replace_nothing(ground: Any) -> None:
    process = ground.process()
    process.cycle()
    ground.cloud.instance_types = ()
    assert set(process.cycle()) == {"instance_types"}
    (stored,) = ground.api.all(resources.INSTANCE_TYPES_CATALOGS)
    assert len(stored["instanceTypes"]) == 2


def test_without_a_cluster_id_no_volume_is_looked_at(ground: Any) -> None:
    ground.settings = dataclasses.replace(ground.settings, cluster_id="")
    process = ground.process()
    assert process.cycle() == {}
    assert CatalogPart.VOLUMES not in ground.cloud.reads[0]
    assert process.orphans() == set()
    assert not any(c.resource == "persistentvolumes" for c in ground.api.calls)


def test_with_no_volumes_left_no_orphan_is_shown(ground: Any) -> None:
    process = ground.process()
    process.cycle()
    assert process.orphans() == {"1", "2"}
    ground.cloud.marked = {}
    process.cycle()
    assert process.orphans() == set()


def test_the_volume_of_a_claim_that_is_provisioned_is_not_orphaned(ground: Any) -> None:
    """Claims are read only for volumes without a PersistentVolume.

    Without the right to, which the reference does not have, such a volume is orphaned.
    """
    provisioned = ground.volume("2", f"pvc-{ground.claim()}")
    volumes = (ground.volume("1", "pvc-1"), provisioned)
    ground.cloud.marked = {ground.settings.cluster_id: volumes}
    process = ground.process()
    process.cycle()
    assert process.orphans() == {"1"}
    ground.api.faults.append(calls.Fault(REFUSED, "list", "persistentvolumeclaims"))
    assert process.cycle() == {}
    assert process.orphans() == {"1", "2"}
    ground.persistent("pvc-1")
    ground.persistent("mine", "2")
    ground.api.calls.clear()
    process.cycle()
    assert process.orphans() == set()
    assert not any(c.resource == "persistentvolumeclaims" for c in ground.api.calls)


def test_conditions_are_shown_and_stored_with_the_right_to(ground: Any) -> None:
    ground.cloud.conditions = (
        catalog.Condition("Quota", "none left", is_ok=False),
        catalog.Condition("Version", "", is_ok=True),
    )
    process = ground.process()
    assert process.cycle() == {}
    labels = {"name": "Quota", "message": "none left"}
    assert process.value("cloud_data_discovery_cloud_conditions_error", **labels) == 1
    (stored,) = ground.api.all(resources.CONFIG_MAPS)
    assert json.loads(stored["data"]["conditions"]) == [
        {"name": "Quota", "message": "none left", "ok": False},
        {"name": "Version", "message": "", "ok": True},
    ]
    ground.api.calls.clear()
    process.cycle()
    assert written(ground) == []
    ground.cloud.conditions = ground.cloud.conditions[1:]
    process.cycle()
    assert (
        process.value("cloud_data_discovery_cloud_conditions_error", **labels) is None
    )


def test_without_the_right_to_the_config_map_conditions_are_only_shown(
    ground: Any,
) -> None:
    ground.cloud.conditions = (catalog.Condition("Quota", "none", is_ok=False),)
    ground.api.faults.append(calls.Fault(REFUSED, "get", "configmaps"))
    process = ground.process()
    assert process.cycle() == {}
    assert (
        process.value(
            "cloud_data_discovery_cloud_conditions_error", name="Quota", message="none"
        )
        == 1
    )
    assert ground.api.all(resources.CONFIG_MAPS) == ()


def test_a_cloud_without_conditions_costs_no_call(ground: Any) -> None:
    ground.process().cycle()
    assert not any(c.resource == "configmaps" for c in ground.api.calls)


def test_classes_are_left_out_unless_asked_for(ground: Any) -> None:
    ground.settings = dataclasses.replace(ground.settings, manages_classes=False)
    process = ground.process()
    assert process.cycle() == {}
    assert ground.classes() == {}
    assert CatalogPart.STORAGE_TYPES not in ground.cloud.reads[0]
    assert process.value("mooring_discovery_step_error", step="storage_classes") is None


def test_a_class_is_made_as_the_reference_makes_it(ground: Any) -> None:
    ground.settings = dataclasses.replace(
        ground.settings, rules=storage_classes.StorageClassRules(default="ssd-r1")
    )
    ground.process().cycle()
    created = ground.classes()["ssd-r1"]
    assert created["provisioner"] == "cinder.csi.openstack.org"
    assert created["parameters"] == {"type": "SSD R1"}
    assert created["volumeBindingMode"] == "WaitForFirstConsumer"
    assert created["allowVolumeExpansion"] is True
    assert "reclaimPolicy" not in created
    assert created["metadata"]["annotations"] == {
        "storageclass.kubernetes.io/is-default-class": "true",
        "mooring.io/default-class": "ssd-r1",
        "mooring.io/volume-type-id": "id-1",
    }
    assert ground.classes()["fast"]["metadata"]["annotations"] == {
        "mooring.io/default-class": "ssd-r1",
        "mooring.io/volume-type-id": "id-2",
    }


def default_classes(ground: Any) -> list[str]:
    return [
        name
        for name, storage_class in ground.classes().items()
        if storage_class["metadata"].get("annotations", {}).get(model.DEFAULT_CLASS)
        == "true"
    ]


def next_cycle(ground: Any, process: Any) -> dict[str, Exception]:
    ground.clock.pass_by(ground.settings.period_s)
    failed: dict[str, Exception] = process.cycle()
    return failed


TYPES = (
    catalog.StorageType("archive", "id-a"),
    catalog.StorageType("fast", "id-f"),
    catalog.StorageType("slow", "id-s"),
)


@pytest.fixture()
def three(ground: Any) -> Any:
    """Three types, of which the user has made "fast" the default class."""
    ground.cloud.storage_types = TYPES
    ground.settings = dataclasses.replace(
        ground.settings, rules=storage_classes.StorageClassRules(default="fast")
    )
    assert ground.process().cycle() == {}
    ground.settings = dataclasses.replace(
        ground.settings, rules=storage_classes.StorageClassRules()
    )
    return ground


def test_a_partial_list_of_types_deletes_no_class(three: Any) -> None:
    """However often it is repeated: the types exist, as a read by ID shows."""
    before = three.classes()
    process = three.process()
    three.cloud.hidden_types = {"fast", "slow"}
    assert next_cycle(three, process) == {}
    for _ in range(3):
        failed = next_cycle(three, process)
        assert set(failed) == {DiscoveryStep.STORAGE_CLASSES}
        assert "found by its ID" in str(failed[DiscoveryStep.STORAGE_CLASSES])
        assert three.classes() == before
    three.cloud.hidden_types = set()
    assert next_cycle(three, process) == {}
    assert three.classes() == before
    assert default_classes(three) == ["fast"]


def test_a_list_without_types_that_are_gone_deletes_in_the_second_cycle(
    three: Any,
) -> None:
    """The default class is not moved to another one: the user is asked to."""
    process = three.process()
    three.cloud.storage_types = TYPES[:1]
    assert next_cycle(three, process) == {}
    process.cycle()  # at once: that is no second cycle
    assert sorted(three.classes()) == ["archive", "fast", "slow"]
    next_cycle(three, process)
    assert sorted(three.classes()) == ["archive"]
    for some in (process, three.process()):
        failed = next_cycle(three, some)
        assert 'default StorageClass "fast": not found' in str(
            failed[DiscoveryStep.STORAGE_CLASSES]
        )
        assert default_classes(three) == []
    three.cloud.storage_types = TYPES
    assert next_cycle(three, process) == {}
    assert default_classes(three) == ["fast"]


def test_a_type_that_can_not_be_read_by_its_id_keeps_its_class(three: Any) -> None:
    three.cloud.storage_types = TYPES[:1]
    three.cloud.type_fault = DOWN
    process = three.process()
    for _ in range(3):
        next_cycle(three, process)
    assert sorted(three.classes()) == ["archive", "fast", "slow"]


@pytest.mark.parametrize("verb", ["create", "delete"])
def test_the_default_survives_a_refused_recreation_of_its_class(
    three: Any, verb: str
) -> None:
    """The type is renamed, and the API server refuses one of the two requests once."""
    three.cloud.storage_types = (
        TYPES[0],
        catalog.StorageType("Fast", "id-f"),
        TYPES[2],
    )
    refused: list[Any] = []

    def refuse(call: Any) -> None:
        if (call.verb, call.resource) == (verb, "storageclasses") and not refused:
            refused.append(call)
            raise REFUSED

    three.api.before_call = refuse
    assert set(three.process().cycle()) == {DiscoveryStep.STORAGE_CLASSES}
    assert len(refused) == 1
    assert three.process().cycle() == {}
    assert three.classes()["fast"]["parameters"] == {"type": "Fast"}
    assert default_classes(three) == ["fast"]
