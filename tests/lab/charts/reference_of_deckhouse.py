"""What Deckhouse's module for OpenStack has in a cluster, by names and kinds.

Source: deckhouse ee/modules/030-cloud-provider-openstack: names and labels.
"""

import pathlib

HOME = "d8-cloud-provider-openstack"
ROLE = "d8:cloud-provider-openstack:csi:controller:external-provisioner"
CONTAINERS = {
    "cloud-controller-manager": ("openstack-cloud-controller-manager",),
    "cloud-data-discoverer": ("cloud-data-discoverer", "kube-rbac-proxy"),
    "csi-controller": (
        "provisioner",
        "attacher",
        "resizer",
        "snapshotter",
        "livenessprobe",
        "controller",
    ),
    "csi-node": ("node-driver-registrar", "node"),
}
"""Containers by workload, which has the label `app` of its name."""
ACCOUNTS = ("cloud-controller-manager", "cloud-data-discoverer", "csi")
_LABELS = "{heritage: deckhouse, module: cloud-provider-openstack, app: %s}"
_WORKLOAD = """
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {app}, namespace: {home}, labels: {labels}}}
spec:
  {replicas}
  selector: {{matchLabels: {selector}}}
  template:
    metadata: {{labels: {pod_labels}}}
    spec:
      serviceAccountName: {account}
      {node_selector}
      containers: {containers}
      volumes:
        - name: cloud-config-volume
          secret: {{secretName: cloud-controller-manager}}
"""
_REST = f"""
apiVersion: v1
kind: Secret
metadata:
  name: cloud-controller-manager
  namespace: {HOME}
  labels: {_LABELS % "cloud-controller-manager"}
stringData: {{cloud-config: "[Global]"}}
---
apiVersion: v1
kind: Secret
metadata:
  name: cloud-data-discoverer
  namespace: {HOME}
  labels: {_LABELS % "cloud-data-discoverer"}
stringData: {{authURL: "https://keystone.example", moduleConfig: "{{}}"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: "{ROLE}", labels: {_LABELS % "csi-controller"}}}
rules:
  - {{apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: "{ROLE}", labels: {_LABELS % "csi-controller"}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{ROLE}"}}
subjects: [{{kind: ServiceAccount, name: csi, namespace: {HOME}}}]
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata:
  name: cinder.csi.openstack.org
  labels: {_LABELS % "csi-controller"}
spec: {{attachRequired: true, podInfoOnMount: false}}
"""
_CHART = """
apiVersion: v2
name: cloud-provider-openstack
version: 1.0.0
"""


def manifest(*, is_stopped: bool = False, more_selector: str = "") -> str:
    """Return all objects. is_stopped: as the steps of a migration leave them.

    more_selector: of the Deployments and the DaemonSet, beside the label `app`.
    """
    accounts = [
        f"apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name},"
        f" namespace: {HOME}, labels: {_LABELS % name}}}\n"
        for name in ACCOUNTS
    ]
    workloads = [_workload(app, is_stopped, more_selector) for app in CONTAINERS]
    return "\n---\n".join((*accounts, _REST, *workloads))


def _workload(app: str, is_stopped: bool, more_selector: str) -> str:
    is_node = app == "csi-node"
    selector = f"{{app: {app}{more_selector}}}"
    containers = ", ".join(
        f"{{name: {name}, image: 'registry.example/deckhouse@sha256:{'0' * 64}',"
        " volumeMounts: [{name: cloud-config-volume, mountPath: /etc/config}]}"
        for name in CONTAINERS[app]
    )
    stopped = 'nodeSelector: {mooring.io/stopped: "true"}' * is_stopped
    return _WORKLOAD.format(
        kind="DaemonSet" if is_node else "Deployment",
        app=app,
        home=HOME,
        labels=_LABELS % app,
        replicas=_replicas(app, is_stopped),
        selector=selector,
        pod_labels=selector,
        account="csi" if app.startswith("csi") else app,
        node_selector=stopped if is_node else "",
        containers=f"[{containers}]",
    )


def _replicas(app: str, is_stopped: bool) -> str:
    if app == "csi-node":
        return "minReadySeconds: 0"
    recreated = app != "cloud-controller-manager"
    strategy = "\n  strategy: {type: Recreate}" if recreated else ""
    return f"replicas: {1 - is_stopped}{strategy}"


def chart(folder: pathlib.Path, more_selector: str = "") -> pathlib.Path:
    """Write a chart with these objects. more_selector: of the manifest."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(_CHART)
    (folder / "templates" / "all.yaml").write_text(
        manifest(more_selector=more_selector)
    )
    return folder
