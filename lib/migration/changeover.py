"""Values, differences and steps of a migration: pure."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lib.migration import http_proxy, reference
from lib.migration.changed_items import ChangedItem
from lib.migration.reference import Observed, ReferenceProgram, ReplacedBy
from lib.process import flags

CHART = "cloud-provider-openstack"
Values = dict[str, Any]

_SET_BY_CHART = frozenset(
    (
        "bind-address",
        "cloud-config",
        "cloud-provider",
        "leader-elect",
        "secure-port",
    )
)
"""Flags of the manager that the chart sets itself."""
_ROLES = tuple(role for role in ReplacedBy if role is not ReplacedBy.MACHINES)
HOSTS_MAX = 9
ANY_NODE: Mapping[str, None] = {"node-role.kubernetes.io/control-plane": None}
"""Value that deletes the chart's selector: the control plane is no Node."""
BESIDE_DECKHOUSE: Mapping[str, bool] = {"enabled": True, "names": False}
"""Values of the chart while Deckhouse's stopped objects keep their names."""


@dataclasses.dataclass(frozen=True, slots=True)
class Changeover:
    """chart: to install. values: of it. steps: titles with the commands of each."""

    chart: str
    namespace: str
    values: Values
    differences: tuple[ChangedItem, ...]
    steps: tuple[tuple[str, tuple[str, ...]], ...]


def plan(
    observed: Observed, manager_flags: Sequence[flags.Flag[object]]
) -> Changeover | None:
    """Return the migration of a cluster; None: the reference is not installed.

    manager_flags: those of openstack-ccm.
    """
    if not observed.programs:
        return None
    first = observed.programs[0]
    roles = {program.role: program for program in observed.programs}
    differences: list[ChangedItem] = []
    values: Values = {
        "global": _global(observed, first),
        "components": {role.value: role in roles for role in _ROLES},
    }
    if manager := roles.get(ReplacedBy.MANAGER):
        own, rows = _manager(manager, manager_flags)
        values[ReplacedBy.MANAGER.value] = own
        differences += rows
    if controller := roles.get(ReplacedBy.CSI_CONTROLLER):
        values[ReplacedBy.CSI_CONTROLLER.value] = _controller(controller, observed)
    if node := roles.get(ReplacedBy.CSI_NODE):
        values[ReplacedBy.CSI_NODE.value] = _node(node)
    if discoverer := roles.get(ReplacedBy.DISCOVERER):
        owner = roles.get(ReplacedBy.CSI_CONTROLLER, discoverer).flag("cluster")
        values[ReplacedBy.DISCOVERER.value] = {"clusterUUID": owner} if owner else {}
    _place(values, observed, first.namespace)
    differences += observed.refused
    differences += http_proxy.differences(observed.programs)
    differences += [row for program in observed.programs for row in _workload(program)]
    return Changeover(
        CHART,
        first.namespace,
        values,
        tuple(differences),
        tuple(_steps(observed, first.namespace, values)),
    )


def _global(observed: Observed, first: ReferenceProgram) -> Values:
    stated = [program for program in observed.programs if program.secret]
    secret = {}
    if stated:
        secret = {"secretName": stated[0].secret, "key": stated[0].key}
    return {
        "imageRegistry": "REGISTRY",
        **({"cloudConfig": secret} if secret else {}),
        "controlPlaneNodes": min(observed.control_plane, HOSTS_MAX),
        **http_proxy.values(observed.programs),
        "deckhouse": BESIDE_DECKHOUSE if first.is_deckhouse else {"enabled": False},
    }


def _place(values: Values, observed: Observed, namespace: str) -> None:
    """State what the common values do not: other Secrets, a managed control plane."""
    shared = values["global"].get("cloudConfig")
    for program in observed.programs:
        own = {"secretName": program.secret, "key": program.key}
        is_special = program.secret and own != shared
        if is_special and program.role is not ReplacedBy.CSI_NODE:
            values[program.role.value]["cloudConfig"] = own
        if not observed.control_plane and program.role is not ReplacedBy.CSI_NODE:
            values[program.role.value]["nodeSelector"] = dict(ANY_NODE)


def _manager(
    program: ReferenceProgram, known: Sequence[flags.Flag[object]]
) -> tuple[Values, list[ChangedItem]]:
    values: Values = {"clusterName": program.flag("cluster-name") or "kubernetes"}
    if any(map(program.flag, _LEASE_FLAGS)):
        values["leaderElection"] = lease(program)
    if cidr := program.flag("cluster-cidr"):
        values["clusterCIDR"] = cidr
    if routes := program.flag("configure-cloud-routes"):
        values["configureCloudRoutes"] = routes == "true"
    if controllers := program.flag("controllers"):
        values["controllers"] = controllers.split(",")
    values.update(verbosity(program))
    extra, differences = _other_flags(program, known)
    if extra:
        values["extraArgs"] = extra
    return values, differences


def lease(program: ReferenceProgram) -> Values:
    """Return the Lease of the reference's manager: its flags, or their defaults."""
    name, namespace = map(program.flag, _LEASE_FLAGS)
    return {
        "resourceName": name or "cloud-controller-manager",
        "resourceNamespace": namespace or "kube-system",
    }


def verbosity(program: ReferenceProgram) -> Values:
    """Return the value of the verbosity; none if the reference has no such flag."""
    flag = program.flag("v")
    return {"verbosity": min(int(flag), 10)} if flag.isdecimal() else {}


_LEASE_FLAGS = ("leader-elect-resource-name", "leader-elect-resource-namespace")
_OF_VALUES = frozenset(
    (
        *_LEASE_FLAGS,
        "cluster-cidr",
        "cluster-name",
        "configure-cloud-routes",
        "controllers",
        "v",
    )
)


def _other_flags(
    program: ReferenceProgram, known: Sequence[flags.Flag[object]]
) -> tuple[list[str], list[ChangedItem]]:
    """Return the flags for extraArgs, and those that have no effect any more."""
    by_name = {flag.name: flag for flag in known}
    extra, differences = [], []
    for word in program.flags:
        name = word.lstrip("-").partition("=")[0]
        if name in _SET_BY_CHART | _OF_VALUES:
            continue
        flag = by_name.get(name)
        if flag is None:
            differences.append(ChangedItem(f"flag --{name}", word, "unknown: removed"))
        elif flag.no_effect:
            row = ChangedItem(f"flag --{name}", word, f"no effect: {flag.no_effect}")
            differences.append(row)
        else:
            extra.append("--" + word.lstrip("-"))
    return extra, differences


def _controller(program: ReferenceProgram, observed: Observed) -> Values:
    sidecars = {
        container: words
        for container, words in program.sidecars.items()
        if "provisioner" in container
    }
    words = next(iter(sidecars.values()), ())
    values: Values = {
        "clusterUUID": program.flag("cluster") or "kubernetes",
        "topology": "Topology=false" not in reference.flag(words, "feature-gates"),
    }
    if program.flag("pvc-annotations") == "true":
        values["pvcAnnotations"] = True
    if timeout := reference.flag(words, "timeout"):
        values["sidecars"] = {"timeout": timeout}
    if observed.driver is not None:
        values["csiDriver"] = {
            "podInfoOnMount": observed.driver.pod_info_on_mount,
            "fsGroupPolicy": observed.driver.fs_group_policy,
            "volumeLifecycleModes": list(observed.driver.volume_lifecycle_modes),
        }
    return values


def _node(program: ReferenceProgram) -> Values:
    path = ""
    for words in program.sidecars.values():
        path = path or reference.flag(words, "kubelet-registration-path")
    values: Values = {"topology": program.flag("with-topology") != "false"}
    for folder in ("/plugins/", "/csi-plugins/"):
        if folder in path:
            values["kubeletDirectory"] = path.partition(folder)[0]
    return values


def _workload(program: ReferenceProgram) -> list[ChangedItem]:
    component = program.role.value
    kind = "DaemonSet" if program.role is ReplacedBy.CSI_NODE else "Deployment"
    is_manager = program.role is ReplacedBy.MANAGER
    suffix = "-openstack" if program.is_deckhouse and not is_manager else ""
    rows = [
        ChangedItem(
            f"{component}: workload",
            f"{program.kind} {program.name}",
            f"{kind} {component}{suffix}",
        )
    ]
    if is_manager:
        rows.append(served(program, "10471"))
    return [*rows, *_OF_ROLE.get(program.role, ())]


def served(program: ReferenceProgram, port: str) -> ChangedItem:
    """Return where a manager serves probes and metrics, before and after.

    port: of the chart. Defaults of the reference: those of k8s.io/cloud-provider.
    """
    address = program.flag("bind-address") or "0.0.0.0"  # noqa: S104 - is shown
    before = f"{address}, port {program.flag('secure-port') or '10258'}"
    after = f"address of the host, port {port}"
    if address in _LOOPBACK:
        after += ": other hosts reach it, and need a token"
    return ChangedItem("address of probes and metrics", before, after)


_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


_OF_ROLE: Mapping[ReplacedBy, Sequence[ChangedItem]] = {
    ReplacedBy.MANAGER: (
        ChangedItem(
            "load balancers, listeners", "no owner", "ownership tags are added"
        ),
        ChangedItem(
            "Services",
            "no record of the load balancer",
            "annotation mooring.io/load-balancer-id is added",
        ),
    ),
    ReplacedBy.CSI_CONTROLLER: (
        ChangedItem("VolumeSnapshots", "supported", "not supported"),
        ChangedItem("port of livenessprobe", "9808", "9818"),
    ),
    ReplacedBy.CSI_NODE: (
        ChangedItem("credentials on Nodes", "mounted", "not mounted"),
        ChangedItem(
            "registration", "node-driver-registrar", "csi-node, unless mode is sidecar"
        ),
    ),
}


def _steps(
    observed: Observed, namespace: str, values: Values
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the steps; only those of programs that are there."""
    roles = {program.role for program in observed.programs}
    steps: list[tuple[str, tuple[str, ...]]] = []
    if "cloudConfig" not in values["global"]:
        text = f"kubectl -n {namespace} create secret generic cloud-config"
        create = f"{text} --from-file=cloud.conf"
        steps.append(
            ("Create the Secret; the reference reads a file of the host", (create,))
        )
    preview: tuple[str, ...] = ()
    if ReplacedBy.MANAGER in roles:
        name = values[ReplacedBy.MANAGER.value]["clusterName"]
        option = _configuration(values, namespace)
        preview = (
            f"mooring plan nodes {option}",
            f"mooring plan services {option} --cluster-name {name}",
            f"mooring doctor {option}",
        )
    steps += [
        (
            "Build the images and push them; none is published yet",
            build(name for name, is_there in values["components"].items() if is_there),
        ),
        ("Write the values, and replace REGISTRY", _WRITE),
        ("See what would change; these commands only read", preview),
        (stop_title(observed), (*deckhouse(observed, 0), *stop(observed))),
        ("Install the chart", _install(observed, namespace)),
        ("Check", ("mooring doctor", "kubectl get nodes,csinodes,services -A")),
        (
            "Roll back, if necessary",
            (*back(observed, namespace, CHART), *deckhouse(observed, 1)),
        ),
    ]
    return [(title, commands) for title, commands in steps if commands]


def _configuration(values: Values, namespace: str) -> str:
    """Return the option that names the cloud.conf of the reference's Secret."""
    own = values[ReplacedBy.MANAGER.value].get("cloudConfig")
    secret = own or values["global"].get("cloudConfig")
    if secret is None:
        return f"--cloud-config-secret {namespace}/cloud-config/cloud.conf"
    key = f"/{secret['key']}" if secret.get("key") else ""
    return f"--cloud-config-secret {namespace}/{secret['secretName']}{key}"


def build(components: Iterable[str]) -> tuple[str, ...]:
    """Return the command that builds the images of components."""
    names = " ".join(components)
    return (f"./pants run cmd/mooring -- lab image {names} --push REGISTRY",)


def stop_title(observed: Observed) -> str:
    """Return the title of the step that stops the reference."""
    if observed.programs[0].is_deckhouse:
        return "Stop the reference; stop Deckhouse first, which would start it again"
    return "Stop the reference; its objects remain for a rollback"


_WRITE = ("mooring migrate openstack --only values > values.yaml",)
_STOPPED = '{"spec":{"template":{"spec":{"nodeSelector":{"mooring.io/stopped":%s}}}}}'


def stop(observed: Observed) -> tuple[str, ...]:
    """Return the commands that stop the reference; its objects remain."""
    return tuple(
        _scale(program, 0, _STOPPED % '"true"') for program in observed.programs
    )


def deckhouse(observed: Observed, replicas: int) -> tuple[str, ...]:
    """Return the command that stops or starts Deckhouse, if it is there.

    It starts the reference again, and is stopped before.
    """
    if not observed.programs[0].is_deckhouse:
        return ()
    return (f"kubectl -n d8-system scale deployment deckhouse --replicas={replicas}",)


def back(observed: Observed, namespace: str, chart: str) -> tuple[str, ...]:
    """Return the commands that remove a chart and start the reference.

    With as many replicas as it had; 1 where it was already stopped.
    """
    starts = (
        _scale(program, max(1, program.desired), _STOPPED % "null")
        for program in observed.programs
    )
    return (f"helm uninstall {chart} -n {namespace}", *starts)


def _scale(program: ReferenceProgram, replicas: int, patch: str) -> str:
    """Return the command that stops or starts a program. replicas: of a Deployment."""
    where = f"kubectl -n {program.namespace}"
    if program.kind == "DaemonSet":
        return f"{where} patch daemonset {program.name} --type=merge -p '{patch}'"
    return f"{where} scale deployment {program.name} --replicas={replicas}"


def _install(observed: Observed, namespace: str) -> tuple[str, ...]:
    adopt = " --take-ownership" if observed.driver is not None else ""
    words = f"helm install {CHART} charts/{CHART} -n {namespace} -f values.yaml"
    return (words + adopt,)
