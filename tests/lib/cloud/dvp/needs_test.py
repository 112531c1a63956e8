"""Rights that are needed: by the manifest of the child, and in the parent."""

from lib.cloud.dvp import kinds, needs
from lib.cloud.dvp.load_balancers import lb_names
from lib.doctor import rights
from lib.doctor.model import Right


def test_the_manifest_has_what_openstack_has_not() -> None:
    """Endpoints and the disabling ConfigMap; no routes, no UID of a namespace, and no
    annotations of Services."""
    own = set(rights.parse(needs.manifest()))
    openstack = set(rights.parse(rights.manifest("openstack-ccm")))
    print(*sorted(map(str, own - openstack)), sep="\n")
    namespace, _, name = lb_names.DISABLING_CONFIG_MAP.partition("/")
    assert own - openstack == {
        Right("list", "discovery.k8s.io", "endpointslices"),
        Right("watch", "discovery.k8s.io", "endpointslices"),
        Right("list", "", "configmaps", namespace=namespace, name=name),
        Right("watch", "", "configmaps", namespace=namespace, name=name),
    }
    missing = openstack - own
    assert Right("patch", "", "services") in missing
    names = {right.resource for right in missing}
    assert names == {"configmaps", "namespaces", "services"}


def test_each_component_that_uses_the_parent_has_needs() -> None:
    assert set(needs.COMPONENTS) == {
        "capdvp",
        "cloud-data-discoverer",
        "csi-controller",
        "dvp-ccm",
    }
    for component, rows in needs.COMPONENTS.items():
        for need in rows:
            assert set(need.verbs) <= {
                *("get", "list", "watch", "create", "patch", "delete"),
                "deletecollection",
            }, component
    checked = [
        need.resource for need in needs.COMPONENTS["dvp-ccm"] if need.is_optional
    ]
    assert checked == [kinds.HEALTHCHECKED_SERVICES.resource]
