"""The reasons of problems that only Octavia and Neutron have."""

from lib.cloud.steps import ProblemReason


class OctaviaReason(ProblemReason):
    """Declared beside `steps.CommonReason` and `load_balancers.Reason`."""

    SUBNET = "SubnetNotFound"
    """Missing, or several where one must be."""
    NO_FLOATING_NETWORK = "NoFloatingNetwork"
    SHARED_LIMIT = "SharedLimitReached"
    TLS = "TLSContainerNotReadable"
    UNKNOWN_ANNOTATION = "UnknownAnnotation"
    """Its key is misspelt, so that nothing reads it."""
