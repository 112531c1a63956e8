"""A simulated parent as the cloud of a lab: implements `grounds.Grounds`."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.daemons import ccm, csi
from lib.lab.dvp import capdvp_lab, parent, pod_charts, project, virtual_servers
from lib.lab.grounds import grounds, servers
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes, progress

NAME = "dvp"
MANAGER = "dvp-ccm"
DRIVER = "csi.dvp.deckhouse.io"
CLUSTER = "6d6f6f72-696e-4720-8c61-620000000002"
"""UUID of the lab's cluster."""
_MORE_RIGHTS = """
apiVersion: v1
kind: Namespace
metadata: {name: d8-cloud-provider-dvp}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dvp-ccm-endpoints}
rules:
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dvp-ccm-endpoints}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: dvp-ccm-endpoints
subjects: [{kind: ServiceAccount, name: dvp-ccm, namespace: kube-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: dvp-ccm, namespace: d8-cloud-provider-dvp}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dvp-ccm, namespace: d8-cloud-provider-dvp}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: dvp-ccm}
subjects: [{kind: ServiceAccount, name: dvp-ccm, namespace: kube-system}]
"""
"""Of a Service with externalTrafficPolicy Local, and of the disabling ConfigMap."""
_PROGRAMS = (*control_plane.PROGRAMS, parent.SIMULATOR)
_PORTS = ("etcd", "apiserver", "kube-controller-manager")
_VARIABLE = "PARENT_KUBECONFIG"


def _title(program: str) -> str:
    """Return the name of a program of the parent, which the child has, too."""
    return program if program == parent.SIMULATOR else f"parent {program}"


def variables(namespace: str) -> Mapping[str, str]:
    """Return the variables of components besides the kubeconfig."""
    return {"DVP_NAMESPACE": namespace, "CLUSTER_UUID": CLUSTER}


def _flag(where: places.Places) -> str:
    """Return the flag that names the kubeconfig of the project's user."""
    file = parent.make_project(parent.beside(where)).kubeconfig
    return f"--parent-kubeconfig={file}"


class DvpClaims:
    """Claims on disks of the lab's parent, for `grounds.Claims`."""

    driver = DRIVER

    @property
    def default_class(self) -> str:
        """A class that is bound immediately: no Pod of the lab uses its claims."""
        return f"""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: {csi.CLASS}
  annotations: {{storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: {DRIVER}
allowVolumeExpansion: true
parameters: {{dvpStorageClass: {project.STORAGE_AT_ONCE}}}
"""

    def arguments(self, where: places.Places) -> tuple[str, ...]:
        """See the protocol."""
        return ("--cloud=dvp", _flag(where))

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """See the protocol."""
        del where
        return variables(parent.NAMESPACE)


class DvpDiscovery:
    """The lab's parent, for `grounds.Discovery`."""

    arguments = ("--cloud=dvp",)
    offers = "storageClasses"

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """See the protocol."""
        opened = parent.make_project(parent.beside(where))
        encoded = {"DVP_KUBERNETES_CONFIG_BASE64": opened.encoded()}
        return {**encoded, **variables(parent.NAMESPACE)}

    def installed(self) -> Mapping[str, object]:
        """See the protocol.

        Source: Deckhouse, DVPCloudDiscoveryData.
        """
        return {"layout": "Standard", "zones": ["default"]}


class DvpGrounds:
    """The lab's own parent cluster; also `machine_grounds.MachineGrounds`."""

    name = NAME
    title = "the parent cluster"
    manager = MANAGER
    programs = tuple(map(_title, _PROGRAMS))
    has_routes = False
    volumes = None
    claims = DvpClaims()
    discovery = DvpDiscovery()
    charts = pod_charts.DvpCharts(CLUSTER)
    machines = capdvp_lab.CapdvpMachines(variables(parent.NAMESPACE))
    load_balancer_annotation = ""
    has_load_balancers = True
    variables = (_VARIABLE,)

    @property
    def manifest(self) -> str:
        """The rights of a cloud controller manager, and those of this one besides."""
        return f"{ccm.manifest().replace(ccm.NAME, MANAGER)}---{_MORE_RIGHTS}"

    @property
    def faults(self) -> Mapping[str, grounds.Fault]:
        """See the protocol."""
        return {"without parent": without_parent}

    def ports(self, where: places.Places) -> Mapping[str, int]:
        """See the protocol."""
        place = parent.beside(where)
        names = dict(zip(control_plane.PROGRAMS, _PORTS, strict=True))
        return {_title(name): place.port(port) for name, port in names.items()}

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol: its programs are those of the lab's own cluster."""
        programs.build(where, [control_plane.GROUP], shown)

    def is_built(self, where: places.Places) -> bool:
        """See the protocol."""
        return not programs.missing(where, [control_plane.GROUP])

    def up(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        place = parent.beside(where)
        place.state.mkdir(parents=True, exist_ok=True)
        parent.up(place, shown)

    def down(self, where: places.Places) -> None:
        """See the protocol."""
        parent.down(parent.beside(where))

    def status(self, where: places.Places) -> tuple[grounds.CloudProgram, ...]:
        """See the protocol."""
        place, ports = parent.beside(where), self.ports(where)
        rows = [
            (row.program, row.pid is not None, row.ready)
            for row in control_plane.status(place)
        ]
        runs = processes.find(place, parent.SIMULATOR) is not None
        rows.append((parent.SIMULATOR, runs, runs))
        return tuple(
            grounds.CloudProgram(
                _title(name), ports.get(_title(name), 0), runs=runs, answers=answers
            )
            for name, runs, answers in rows
        )

    def prepare(self, where: places.Places) -> None:
        """Create the project of the servers."""
        parent.make_project(parent.beside(where))

    def open(self, where: places.Places, existing: grounds.Existing) -> servers.Cloud:
        """See the protocol."""
        opened = self.described(where, existing)
        api = cluster.connect(pathlib.Path(opened.file))
        return virtual_servers.VirtualServers(api, opened.name, CLUSTER)

    def environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """Return the kubeconfig of the parent; kubectl reads KUBECONFIG."""
        return {_VARIABLE: self.described(where, existing).file}

    def described(
        self, where: places.Places, existing: grounds.Existing
    ) -> grounds.Existing:
        """Return the parent by its project and kubeconfig."""
        if existing.name:
            return existing
        file = control_plane.admin_kubeconfig(parent.beside(where))
        return grounds.Existing(parent.NAMESPACE, str(file))

    def manager_arguments(
        self,
        where: places.Places,
        existing: grounds.Existing,
        kubeconfig: pathlib.Path,
        pod_cidr: str = "",
    ) -> tuple[str, ...]:
        """Return the reference's own command line."""
        del existing, pod_cidr
        return (
            "--cloud-provider=dvp",
            "--allow-untagged-cloud=true",
            "--configure-cloud-routes=false",
            _flag(where),
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={where.port(ccm.PORT)}",
            "--v=4",
            *ccm.LAB,
        )

    def manager_environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """See the protocol."""
        del where, existing
        return variables(parent.NAMESPACE)


@contextlib.contextmanager
def without_parent(where: places.Places) -> Iterator[None]:
    """Stop the API server of the parent; its VMs run on."""
    place = parent.beside(where)
    processes.stop(place, ["kube-apiserver"])
    try:
        yield
    finally:
        control_plane.up(place, progress.Silent())
