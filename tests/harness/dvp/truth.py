"""What the simulated parent does as the platform does it: source and test of each row.

A row is an assumption that was once wrong, or that clients depend on. The source is
deckhouse/virtualization, commit cf3a9e6c, below images/virtualization-artifact/pkg
unless another place is named.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class TruthRow:
    """One row. tests: file and function, below tests/."""

    behaviour: str
    source: str
    tests: tuple[str, ...]


_RULES = "lib/lab/dvp/admission_rules_test.py::test_a_write_is_judged"
_THROUGH_API = "lab/dvp/admission_test.py::test_the_webhooks_judge_changes"
_FAILURES = "lib/lab/dvp/parent_simulator_truth_test.py::"
_HAPPENS = "lab/dvp/transitions_test.py::test_each_transition_happens"

ROWS = (
    TruthRow(
        "every validator judges every UPDATE of a VM, also of a label",
        "controller/vm/vm_webhook.go",
        (
            _RULES,
            "lib/lab/dvp/admission_rules_test.py"
            "::test_every_rule_has_a_row_that_it_refuses",
            "lab/dvp/admission_test.py"
            "::test_a_class_that_is_restricted_refuses_every_write_of_its_vms",
        ),
    ),
    TruthRow(
        "a VM that is being deleted is not judged",
        "controller/vm/vm_webhook.go, ValidateUpdate",
        (
            "lib/lab/dvp/admission_rules_test.py::test_a_vm_that_is_deleted_is_not_judged",
        ),
    ),
    TruthRow(
        "storage class, its provisioner, image and name of a disk are judged",
        "controller/vd/internal/validator",
        (_RULES, _THROUGH_API),
    ),
    TruthRow(
        "writes of VMs, disks and attachments fail while their controller restarts",
        "templates/virtualization-controller/validation-webhook.yaml",
        (
            "lab/dvp/admission_test.py::test_without_its_controller_no_write_is_accepted",
        ),
    ),
    TruthRow(
        "no VM is Degraded: what does not start is Pending",
        "controller/vm/internal/lifecycle.go",
        (
            f"{_FAILURES}test_a_vm_that_crashes_is_pending",
            "lab/dvp/transitions_test.py::test_failures_come_on_demand",
        ),
    ),
    TruthRow(
        "a VM that is not to run is Stopped only when its parts are ready",
        "controller/vm/internal/sync_kvvm.go",
        (f"{_FAILURES}test_a_vm_that_is_held_back_waits_for_its_parts",),
    ),
    TruthRow(
        "ipAddress is there before Running",
        "controller/vm/internal/ipam.go",
        (f"{_FAILURES}test_the_address_is_there_before_the_vm_runs",),
    ),
    TruthRow(
        "labels of a VM reach Pods that run",
        "controller/vm/internal/sync_metadata.go",
        (f"{_FAILURES}test_labels_reach_pods_that_run", _HAPPENS),
    ),
    TruthRow(
        "a refused Pod has a fixed text in the condition Running",
        "controller/vm/internal/util.go, vmStartupMessage",
        (f"{_FAILURES}test_a_refused_start_has_a_fixed_text",),
    ),
    TruthRow(
        "reasons of the condition Running are those of the platform",
        "api/core/v1alpha2/vmcondition",
        (f"{_FAILURES}test_reasons_are_those_of_the_platform",),
    ),
    TruthRow(
        "phase Failed of a disk is left again, unless its reason is final",
        "controller/vd/internal/source",
        (
            f"{_FAILURES}test_a_disk_that_failed_recovers",
            f"{_FAILURES}test_a_disk_that_failed_terminally_stays",
        ),
    ),
    TruthRow(
        "a refused claim is Pending with QuotaExceeded, a refused importer Failed",
        "controller/vd/internal/source/step",
        (f"{_FAILURES}test_a_quota_fails_the_importer_and_not_the_claim",),
    ),
    TruthRow(
        "an image is aligned up to a MiB before it is compared with its disk",
        "controller/service/disk_service.go, alignUpToBlockSize",
        (
            f"{_FAILURES}test_an_image_is_aligned_before_it_is_compared",
            "lib/cloud/dvp/machines/desired_machine_bad_input_test.py"
            "::test_nothing_is_created_without_its_prerequisites",
        ),
    ),
    TruthRow(
        "ServiceWithHealthchecks passes on no class, address, source range or selector",
        "deckhouse, internal/controller of ServiceWithHealthchecks",
        (
            "lab/dvp/dvp_services_test.py"
            "::test_a_service_reaches_its_nodes_through_the_parent",
            _HAPPENS,
        ),
    ),
    TruthRow(
        "a second attachment of a disk is refused when it is created",
        "controller/vmbda/internal/validators/attachment_conflict_validator.go",
        (_RULES,),
    ),
    TruthRow(
        "sizing policies: the greatest belongs to the grid, no step without a maximum",
        "controller/service/size_policy_service.go",
        (_RULES,),
    ),
    TruthRow(
        "VirtualMachineClass is served as v1alpha2 and v1alpha3",
        "crds/virtualmachineclasses.yaml",
        (
            "lib/cloud/dvp/served_versions_test.py"
            "::test_an_older_platform_is_asked_in_its_version",
            "lib/lab/dvp/parent_kinds_test.py::test_the_lab_lacks_nothing",
        ),
    ),
    TruthRow(
        "definitions: names, types, limits, defaults of every field",
        "crds/",
        ("lib/lab/dvp/parent_kinds_test.py::test_the_lab_lacks_nothing",),
    ),
    TruthRow(
        "a field that no definition names is dropped",
        "Kubernetes apiextensions, structural schemas",
        (
            "harness/dvp/dropped_fields_test.py"
            "::test_fields_that_were_dropped_are_named",
            "lib/lab/dvp/parent_kinds_test.py"
            "::test_what_the_platform_refuses_or_drops_is_refused",
        ),
    ),
)
