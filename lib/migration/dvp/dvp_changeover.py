"""Values, differences and steps of a migration from the module for DVP: pure.

Source: deckhouse modules/030-cloud-provider-dvp, both generations: the same workloads,
Secrets and variables.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.kube import resources
from lib.migration import changeover, http_proxy, reference, reference_callers
from lib.migration.changed_items import ChangedItem
from lib.migration.changeover import Changeover
from lib.migration.reference import Observed, ReferenceProgram, ReplacedBy

CHART = "cloud-provider-dvp"
COMPONENTS: Mapping[ReplacedBy, str] = {
    ReplacedBy.MANAGER: "dvp-ccm",
    ReplacedBy.MACHINES: "capdvp",
    ReplacedBy.CSI_CONTROLLER: "csi-controller",
    ReplacedBy.CSI_NODE: "csi-node",
    ReplacedBy.DISCOVERER: "cloud-data-discoverer",
}
_WORKLOADS: Mapping[ReplacedBy, str] = {
    role: name if role in (ReplacedBy.MANAGER, ReplacedBy.MACHINES) else f"{name}-dvp"
    for role, name in COMPONENTS.items()
}
REFERENCE = reference.Family(
    CHART,
    "csi.dvp.deckhouse.io",
    {**reference.APPS, "capdvp-controller-manager": ReplacedBy.MACHINES},
    has_programs=False,
    components=frozenset(_WORKLOADS.values()),
    clusters=resources.Resource(
        "infrastructure.cluster.x-k8s.io",
        "v1alpha1",
        "deckhouseclusters",
        "DeckhouseCluster",
        True,
    ),
)
_FINALIZER = "deckhousecluster.infrastructure.cluster.x-k8s.io"
"""Of capdvp; see lib/cloud/dvp/machines/capi_kinds.py."""
_KUBECONFIG = "DVP_KUBERNETES_CONFIG_BASE64"
_KEY = "kubernetesConfigBase64"
_SECRETS = {ReplacedBy.MACHINES: "dvp-credentials-capdvp"}
_SECRET = "dvp-credentials"  # noqa: S105 - a name
"""What the chart reads with deckhouse.enabled, unless the values name others."""
_CONTROLLERS = {
    "*": "*",
    "cloud-node": "cloud-node-controller",
    "cloud-node-controller": "cloud-node-controller",
    "cloud-node-lifecycle": "cloud-node-lifecycle-controller",
    "cloud-node-lifecycle-controller": "cloud-node-lifecycle-controller",
    "service": "service-lb-controller",
    "service-lb-controller": "service-lb-controller",
}
"""Names and their aliases. Source: k8s.io/cloud-provider, names."""


def plan(observed: Observed) -> Changeover | None:
    """Return the migration of a cluster; None: the reference is not installed."""
    if not observed.programs:
        return None
    namespace = observed.programs[0].namespace
    roles = {program.role: program for program in observed.programs}
    values = _values(observed, roles)
    rows = (*_differences(roles), *observed.refused, *_left_behind(observed))
    return Changeover(CHART, namespace, values, rows, _steps(observed, namespace))


def _values(
    observed: Observed, roles: Mapping[ReplacedBy, ReferenceProgram]
) -> changeover.Values:
    values: changeover.Values = {
        "global": {
            "imageRegistry": "REGISTRY",
            **_parent(roles),
            "controlPlaneNodes": min(observed.control_plane, changeover.HOSTS_MAX),
            **http_proxy.values(roles.values()),
            "deckhouse": changeover.BESIDE_DECKHOUSE,
        },
        "components": {name: role in roles for role, name in COMPONENTS.items()},
    }
    if manager := roles.get(ReplacedBy.MANAGER):
        values["dvp-ccm"] = _manager(manager)
    if ReplacedBy.DISCOVERER in roles:
        # Deckhouse's hooks create them.
        values["cloud-data-discoverer"] = {"storageClasses": {"manage": False}}
    if controller := roles.get(ReplacedBy.CSI_CONTROLLER):
        values["csi-controller"] = _controller(controller)
    if folder := _kubelet_folder(roles.get(ReplacedBy.CSI_NODE)):
        values["csi-node"] = {"kubeletDirectory": folder}
    if not observed.control_plane:
        for role in roles.keys() - {ReplacedBy.CSI_NODE}:
            own = values.setdefault(COMPONENTS[role], {})
            own["nodeSelector"] = dict(changeover.ANY_NODE)
    return values


def _parent(roles: Mapping[ReplacedBy, ReferenceProgram]) -> dict[str, Any]:
    """Return the Secrets that are not those of the module; csi-node needs none."""
    stated = {
        role: program.variables[_KUBECONFIG]
        for role, program in roles.items()
        if _KUBECONFIG in program.variables and role is not ReplacedBy.CSI_NODE
    }
    others = {
        COMPONENTS[role]: name
        for role, (name, key) in stated.items()
        if (name, key) != (_SECRETS.get(role, _SECRET), _KEY)
    }
    if not others:
        return {}
    names = {COMPONENTS[role]: name for role, (name, _) in stated.items()}
    key = next(iter(stated.values()))[1]
    return {"parent": {"secretNames": names, "key": key}}


def _manager(program: ReferenceProgram) -> dict[str, Any]:
    """Return the values of dvp-ccm, with the Lease of the reference.

    Only one of the two programs is active, whichever is started.
    """
    values: dict[str, Any] = {"leaderElection": changeover.lease(program)}
    if controllers := program.flag("controllers"):
        words = controllers.split(",")
        values["controllers"] = [
            f"{'-' * word.startswith('-')}{_CONTROLLERS[word.removeprefix('-')]}"
            for word in words
            if word.removeprefix("-") in _CONTROLLERS
        ]
    return values | changeover.verbosity(program)


def _controller(program: ReferenceProgram) -> dict[str, Any]:
    """Return the values of csi-controller; the CSIDriver stays as it is."""
    values: dict[str, Any] = {"csiDriver": {"nodeAllocatableUpdatePeriodSeconds": 0}}
    for container, words in program.sidecars.items():
        if "provisioner" in container and (timeout := reference.flag(words, "timeout")):
            values["sidecars"] = {"timeout": timeout}
    return values


def _kubelet_folder(program: ReferenceProgram | None) -> str:
    """Return the folder of the kubelet; empty: the default of the chart."""
    for words in program.sidecars.values() if program else ():
        path = reference.flag(words, "kubelet-registration-path")
        folder, separator, _ = path.partition("/csi-plugins/")
        if separator and folder != "/var/lib/kubelet":
            return folder
    return ""


_OF_ROLE: Mapping[ReplacedBy, Sequence[ChangedItem]] = {
    ReplacedBy.MANAGER: (
        ChangedItem(
            "load balancers in the parent", "no owner", "ownership labels are added"
        ),
        ChangedItem(
            "instance type, zone and region of Nodes", "none", "labels are added"
        ),
    ),
    ReplacedBy.MACHINES: (
        ChangedItem(
            "VMs and disks of machines", "no owner", "ownership labels are added"
        ),
        ChangedItem("in-place updates, storage migration", "done", "not done"),
    ),
    ReplacedBy.CSI_CONTROLLER: (
        ChangedItem(
            "attachments", "no owner", "labels and a publish context are added"
        ),
        ChangedItem("port of livenessprobe", "9808", "9828"),
    ),
    ReplacedBy.CSI_NODE: (
        ChangedItem("credentials on Nodes", "in the environment", "none"),
    ),
    ReplacedBy.DISCOVERER: (ChangedItem("orphaned disks", "not reported", "reported"),),
}


def _differences(
    roles: Mapping[ReplacedBy, ReferenceProgram],
) -> tuple[ChangedItem, ...]:
    rows: list[ChangedItem] = []
    for role, program in roles.items():
        after = f"{program.kind} {_WORKLOADS[role]}"
        before = f"{program.kind} {program.name}"
        rows.append(ChangedItem(f"{COMPONENTS[role]}: workload", before, after))
        if role is ReplacedBy.MANAGER:
            rows.append(changeover.served(program, "10481"))
        rows += _OF_ROLE[role]
    rows += http_proxy.differences(roles.values())
    return tuple(rows)


def _left_behind(observed: Observed) -> Iterator[ChangedItem]:
    """Yield what would call the reference, or wait for it, once it is stopped."""
    for extension in observed.extensions:
        item = f"{extension.kind} {extension.name}"
        yield ChangedItem(item, "calls the reference", "deleted")
    for row in observed.finalized:
        for name in reference_callers.foreign(row.finalizers, _FINALIZER):
            item = f"{row.kind} {row.namespace}/{row.name}"
            yield ChangedItem(item, f"finalizer {name}", f"finalizer {_FINALIZER}")


def _stop(observed: Observed) -> tuple[str, ...]:
    """Return the commands that stop the reference, and what depends on it.

    What calls it goes first: without its program each call fails.
    """
    foreign = {
        row: reference_callers.foreign(row.finalizers, _FINALIZER)
        for row in observed.finalized
    }
    return (
        *changeover.deckhouse(observed, 0),
        *reference_callers.remove(observed.extensions),
        *changeover.stop(observed),
        *(
            command
            for row, names in foreign.items()
            if names
            for command in reference_callers.without((row,), names)
        ),
    )


def _saved(observed: Observed, namespace: str) -> tuple[str, ...]:
    """Return the command that saves what Deckhouse's module would delete."""
    if not observed.programs[0].is_deckhouse:
        return ()
    secrets = sorted({_SECRET, *_SECRETS.values()})
    return (
        f"(umask 077; kubectl -n {namespace} get secret {' '.join(secrets)}"
        " --ignore-not-found -o yaml > dvp-secrets.yaml)",
    )


def _back(observed: Observed, namespace: str) -> tuple[str, ...]:
    """Return the commands of a rollback.

    The reference of the first generation has no finalizer of clusters: ours would keep
    a deleted one for ever.
    """
    uninstall, *starts = changeover.back(observed, namespace, CHART)
    return (
        uninstall,
        *reference_callers.without(observed.finalized, (_FINALIZER,)),
        *starts,
        *reference_callers.restore(observed.extensions),
        *changeover.deckhouse(observed, 1),
    )


def _steps(
    observed: Observed, namespace: str
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    roles = {program.role: program for program in observed.programs}
    # There is no Deployment of ours yet that names the Secret.
    names = roles[ReplacedBy.MANAGER].variables if ReplacedBy.MANAGER in roles else {}
    secret, key = names.get(_KUBECONFIG, (_SECRET, _KEY))
    options = f"--cloud=dvp --cloud-config-secret={namespace}/{secret}/{key}"
    kinds = ["nodes", "services"]
    if ReplacedBy.MACHINES in roles:
        kinds.append("machines")
    preview = (
        *(f"mooring plan {kind} {options}" for kind in kinds),
        f"mooring doctor {options}",
    )
    crds = (
        f"helm show crds charts/{CHART}"
        " | kubectl apply --server-side --force-conflicts -f -"
    )
    install = (
        f"helm install {CHART} charts/{CHART} -n {namespace} -f values.yaml"
        " --skip-crds --take-ownership"
    )
    write = "mooring migrate dvp --only values > values.yaml"
    return (
        (
            "Build the images and push them; none is published yet",
            changeover.build(COMPONENTS[role] for role in COMPONENTS if role in roles),
        ),
        ("Write the values, and replace REGISTRY", (write,)),
        ("See what would change; these commands only read", preview),
        (
            changeover.stop_title(observed),
            (*_saved(observed, namespace), *_stop(observed)),
        ),
        ("Update the CRDs, and install the chart", (crds, install)),
        ("Check", ("mooring doctor --cloud=dvp", "kubectl get nodes,csinodes -A")),
        ("Roll back, if necessary", _back(observed, namespace)),
    )
