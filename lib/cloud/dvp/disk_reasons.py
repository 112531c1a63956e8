"""Reasons of Ready=False of a disk, which decide before its phase.

Source: deckhouse/virtualization api/core/v1alpha2/vdcondition and pkg/controller/vd:
each reconciliation computes the phase again, and Failed recovers.
"""

PROCEEDS = frozenset(
    {
        "Provisioning",
        "ProvisioningNotStarted",
        "WaitingForFirstConsumer",
        "WaitForUserUpload",
    }
)
"""Of a disk that is being provisioned, whatever its phase: the parent shows Failed
while an importer Pod is not initialised, and recovers."""
FINAL = frozenset(
    {"ProvisioningFailedTerminally", "StorageClassProvisionerMismatch", "PVCLost"}
)
"""Of a disk that never becomes ready; PVCLost is a phase as well."""
