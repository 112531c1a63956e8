"""`mooring migrate openstack` on a cluster in which the reference's objects are."""

import json
import pathlib
import sys
from typing import Any

import pytest
import yaml
from click import testing as click_testing

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import charts, helm
from lib.lab.kube import cluster, control_plane
from lib.lab.run import progress
from mooring.commands import main

ROOT = pathlib.Path()
UPSTREAM = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: openstack-cloud-controller-manager, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: openstack-cloud-controller-manager}}
  template:
    metadata: {labels: {k8s-app: openstack-cloud-controller-manager}}
    spec:
      containers:
        - name: openstack-cloud-controller-manager
          image: registry.example/openstack-cloud-controller-manager:v1.36.0
          args:
            - /bin/openstack-cloud-controller-manager
            - --v=1
            - --cluster-name=$(CLUSTER_NAME)
            - --cloud-config=$(CLOUD_CONFIG)
            - --cloud-provider=openstack
            - --use-service-account-credentials=false
            - --bind-address=127.0.0.1
          env:
            - {name: CLOUD_CONFIG, value: /etc/config/cloud.conf}
            - {name: CLUSTER_NAME, value: production}
          volumeMounts:
            - {mountPath: /etc/config, name: cloud-config-volume, readOnly: true}
      volumes:
        - {name: cloud-config-volume, secret: {secretName: cloud-config}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: csi-cinder-controllerplugin, namespace: kube-system}
spec:
  selector: {matchLabels: {app: csi-cinder-controllerplugin}}
  template:
    metadata: {labels: {app: csi-cinder-controllerplugin}}
    spec:
      containers:
        - name: csi-provisioner
          image: registry.k8s.io/sig-storage/csi-provisioner:v5.3.0
          args: [--timeout=3m, --default-fstype=ext4, --feature-gates=Topology=true]
        - name: cinder-csi-plugin
          image: registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0
          args:
            - /bin/cinder-csi-plugin
            - --endpoint=$(CSI_ENDPOINT)
            - --cloud-config=$(CLOUD_CONFIG)
            - --cluster=$(CLUSTER_NAME)
          env:
            - {name: CSI_ENDPOINT, value: unix:///csi/csi.sock}
            - {name: CLOUD_CONFIG, value: /etc/config/cloud.conf}
            - {name: CLUSTER_NAME, value: kubernetes}
          volumeMounts: [{mountPath: /etc/config, name: secret-cinderplugin}]
      volumes:
        - {name: secret-cinderplugin, secret: {secretName: cloud-config}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: csi-cinder-nodeplugin, namespace: kube-system}
spec:
  selector: {matchLabels: {app: csi-cinder-nodeplugin}}
  template:
    metadata: {labels: {app: csi-cinder-nodeplugin}}
    spec:
      containers:
        - name: node-driver-registrar
          image: registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0
          args:
            - --csi-address=/csi/csi.sock
            - --kubelet-registration-path=$(SOCKET)
          env:
            - name: SOCKET
              value: /var/lib/kubelet/plugins/cinder.csi.openstack.org/csi.sock
        - name: cinder-csi-plugin
          image: registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0
          args: [/bin/cinder-csi-plugin, --provide-controller-service=false]
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: cinder.csi.openstack.org}
spec:
  attachRequired: true
  podInfoOnMount: true
  volumeLifecycleModes: [Persistent, Ephemeral]
"""
"""Source: kubernetes/cloud-provider-openstack manifests, shortened."""
DECKHOUSE = """
apiVersion: v1
kind: Namespace
metadata: {name: d8-cloud-provider-openstack}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: cloud-controller-manager
  namespace: d8-cloud-provider-openstack
  labels:
    heritage: deckhouse
    module: cloud-provider-openstack
    app: cloud-controller-manager
spec:
  selector: {matchLabels: {app: cloud-controller-manager}}
  template:
    metadata: {labels: {app: cloud-controller-manager}}
    spec:
      containers:
        - name: openstack-cloud-controller-manager
          image: registry.example/deckhouse@sha256:000000000000000000000000000000
          args:
            - --leader-elect=true
            - --cluster-cidr=10.111.0.0/16
            - --allocate-node-cidrs=true
            - --configure-cloud-routes=true
            - --cloud-config=/etc/config/cloud-config
            - --cloud-provider=openstack
            - --secure-port=10471
            - --v=2
          volumeMounts: [{mountPath: /etc/config, name: cloud-config-volume}]
      volumes:
        - name: cloud-config-volume
          secret: {secretName: cloud-controller-manager}
"""
"""Its layout by the module's documentation; images have digests alone."""


@pytest.fixture(scope="module")
def where(apart: places.Places) -> places.Places:
    programs.build(apart, [helm.GROUP], progress.Lines(sys.stderr))
    return apart


def migrate(where: places.Places, *words: str) -> str:
    """Return what the command prints."""
    admin = str(control_plane.admin_kubeconfig(where))
    command = ["migrate", "openstack", "--kubeconfig", admin, *words]
    result = click_testing.CliRunner().invoke(main.commands, command)
    print(result.output)
    assert result.exit_code == 0, result.output
    return result.output


REFUSED = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: several-writers}
spec:
  accessModes: [ReadWriteOnce, ReadWriteMany]
  capacity: {storage: 1Gi}
  csi: {driver: cinder.csi.openstack.org, volumeHandle: one}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: other-file-system}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: cinder.csi.openstack.org, volumeHandle: two, fsType: f2fs}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: accepted}
spec:
  accessModes: [ReadWriteMany]
  volumeMode: Block
  capacity: {storage: 1Gi}
  csi: {driver: cinder.csi.openstack.org, volumeHandle: three}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: cinder}
provisioner: cinder.csi.openstack.org
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: waits, namespace: default}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: cinder
  resources: {requests: {storage: 1Gi}}
"""


def versions(where: places.Places) -> dict[str, str]:
    """Return the resourceVersion of each object that the reference has."""
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    paths = ("/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets")
    drivers = "/apis/storage.k8s.io/v1/csidrivers"
    metadata = [
        item["metadata"]
        for path in (*paths, drivers)
        for item in json.loads(api.request("GET", path, timeout_s=10))["items"]
    ]
    return {meta["name"]: str(meta.get("generation", meta["uid"])) for meta in metadata}


def install(where: places.Places, values: pathlib.Path, home: str) -> Any:
    """Install the chart with values, as the step that is printed does; return them."""
    admin = control_plane.admin_kubeconfig(where)
    chart = charts.folder(ROOT, charts.UMBRELLA)
    words = ("install", charts.UMBRELLA, chart, "-n", home, "--values", values)
    helm.run(where, (*words, "--take-ownership"), admin)
    return yaml.safe_load(values.read_text())


def remove(where: places.Places, home: str) -> None:
    admin = control_plane.admin_kubeconfig(where)
    helm.run(where, ("uninstall", charts.UMBRELLA, "-n", home), admin)


def test_without_the_reference_nothing_is_printed(where: places.Places) -> None:
    admin = str(control_plane.admin_kubeconfig(where))
    command = ["migrate", "openstack", "--kubeconfig", admin]
    result = click_testing.CliRunner().invoke(main.commands, command)
    assert result.exit_code == 1
    assert "is not installed" in result.output


def test_manifests_of_upstream(where: places.Places, tmp_path: pathlib.Path) -> None:
    """The values install the chart; the reference's objects stay as they were."""
    control_plane.apply_manifests(where, UPSTREAM)
    before = versions(where)
    text = migrate(where)
    for part in ("values.yaml of the chart", "Differences:", "Steps:"):
        assert part in text
    file = tmp_path / "values.yaml"
    file.write_text(migrate(where, "--only", "values"))
    assert versions(where) == before
    values = install(where, file, "kube-system")
    assert values["openstack-ccm"]["clusterName"] == "production"
    assert values["csi-controller"]["clusterUUID"] == "kubernetes"
    assert values["components"]["cloud-data-discoverer"] is False
    modes = values["csi-controller"]["csiDriver"]["volumeLifecycleModes"]
    assert modes == ["Persistent", "Ephemeral"]
    remove(where, "kube-system")
    assert versions(where).keys() == before.keys()


def test_refused_volumes_are_listed_before_the_change(where: places.Places) -> None:
    """By the plan, and as differences of the migration."""
    control_plane.apply_manifests(where, REFUSED)
    admin = str(control_plane.admin_kubeconfig(where))
    command = ["plan", "volumes", "--kubeconfig", admin, "-o"]
    names = click_testing.CliRunner().invoke(main.commands, [*command, "name"])
    print(names.output)
    assert names.output.split() == [
        "persistentvolume/other-file-system",
        "persistentvolume/several-writers",
        "persistentvolumeclaim/default/waits",
    ]
    words = [*command, "json", "--detailed-exitcode"]
    plan = click_testing.CliRunner().invoke(main.commands, words)
    assert plan.exit_code == 1
    document = json.loads(plan.output)
    assert document["checked"] == 5
    differences = migrate(where, "--only", "differences")
    for row in document["refused"]:
        assert f"{row['object']}: {row['cause']} -> {row['reason']}" in differences


def test_a_cluster_of_deckhouse(where: places.Places, tmp_path: pathlib.Path) -> None:
    """Found by labels, since its images have no names."""
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    for kind, name in (
        ("daemonsets", "openstack-cloud-controller-manager"),
        ("deployments", "csi-cinder-controllerplugin"),
        ("daemonsets", "csi-cinder-nodeplugin"),
    ):
        path = f"/apis/apps/v1/namespaces/kube-system/{kind}/{name}"
        api.request("DELETE", path, timeout_s=10)
    control_plane.apply_manifests(where, DECKHOUSE)
    file = tmp_path / "values.yaml"
    file.write_text(migrate(where, "--only", "values"))
    home = charts.PLATFORM
    values = install(where, file, home)
    assert values["global"]["deckhouse"] == {"enabled": True, "names": False}
    assert values["global"]["cloudConfig"] == {
        "secretName": "cloud-controller-manager",
        "key": "cloud-config",
    }
    assert values["openstack-ccm"]["clusterCIDR"] == "10.111.0.0/16"
    assert values["openstack-ccm"]["verbosity"] == 2
    remove(where, home)
