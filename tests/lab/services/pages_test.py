"""The pages of docs are followed line by line, from the reference and back.

Commands are read from the pages and run by a shell, with the real kubectl, helm and
mooring, on a cluster that openstack-cloud-controller-manager serves at first. In place
of kubelets and images `tests/harness/docs/pod_runner.py` starts the programs of Pods
with the arguments of their containers.
"""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Iterator, Mapping

import openstack.connection
import pytest
import yaml

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.charts import helm
from lib.lab.kube import cluster, control_plane
from lib.lab.kube.kube_objects import Json
from lib.lab.openstack import accounts, cloud, seed_cloud, tenant
from lib.lab.run import waiting
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.docs import pages, pod_runner, user_shell
from tests.harness.openstack import balancers, inventory
from tests.harness.openstack import testing as openstack_testing
from tests.harness.services import reference, services

NODES = ("pages-1", "pages-2")
RUNNER_PORT = 700
"""Of the programs of Pods, in the block of ports that a run of tests has."""
BY_HAND = (
    "1. Read the settings of the reference",
    "2. See what would change",
    "3. Stop the reference",
    "4. Start openstack-ccm",
    "5. Check",
)
STEPS = "steps.txt"
"""What `mooring migrate` has printed."""
LIMIT_S = waiting.LIMIT_S
SHARED_USER = pathlib.Path("docs/examples/services/shared-user.yaml")
PLACEHOLDER_ID = "9b1c3d52-6f0e-4c0e-8f55-0d6f4a6f1a11"
MANIFEST = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: cloud-controller-manager, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reference}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: openstack-cloud-controller-manager, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: openstack-cloud-controller-manager}}
  template:
    metadata: {labels: {k8s-app: openstack-cloud-controller-manager}}
    spec:
      serviceAccountName: cloud-controller-manager
      hostNetwork: true
      nodeSelector: {node-role.kubernetes.io/control-plane: ""}
      tolerations: [{operator: Exists}]
      containers:
        - name: openstack-cloud-controller-manager
          image: registry.k8s.io/provider-os/openstack-cloud-controller-manager:v1
          args:
            - --cloud-provider=openstack
            - --cloud-config=/etc/config/cloud.conf
            - --cluster-name=kubernetes
            - --bind-address=$(HOST_IP)
            - --leader-elect=true
            - --configure-cloud-routes=false
            - --v=2
          volumeMounts: [{name: config, mountPath: /etc/config, readOnly: true}]
      volumes: [{name: config, secret: {secretName: cloud-config}}]
"""
"""In the form of the reference's manifests."""


@dataclasses.dataclass(kw_only=True)
class Reader(user_shell.UserShell):
    """A reader with a cluster: its Services, and its project of the cloud."""

    services: services.Services
    connection: openstack.connection.Connection

    def balanced(self) -> Mapping[str, Json]:
        """Return the Services of type LoadBalancer."""
        existing = self.services.all()
        return {
            name: service
            for name, service in existing.items()
            if service["spec"]["type"] == "LoadBalancer"
        }

    def addresses(self) -> Mapping[str, object]:
        """Return the addresses in the status of each Service."""
        return {n: services.ingress(s) for n, s in self.balanced().items()}

    def are_served(self) -> bool:
        """Report whether all Services have an address."""
        return all(self.addresses().values())

    def have_members(self) -> bool:
        """Report whether every pool has a member for each Node."""
        view = balancers.look(self.connection)
        counts = [len(balancers.members(self.connection, id_)) for id_ in view.pools]
        is_active = all(
            balancer["provisioning_status"] == balancers.ACTIVE
            for balancer in view.balancers.values()
        )
        return is_active and counts == [len(NODES)] * len(self.balanced())

    def are_owned(self) -> bool:
        """Report whether all Services name a load balancer of openstack-ccm."""
        existing = self.balanced().values()
        return all(keys.OWNED_ID in services.annotations(s) for s in existing)

    def is_in_sync(self) -> bool:
        """Report whether `mooring plan` shows no change of any Service."""
        files = "--kubeconfig admin.conf --cloud-config cloud.conf"
        plan = self.run(f"mooring plan services {files} --cluster-name kubernetes")
        return plan.startswith("default/") and "would" not in plan

    def balancer_id(self, name: str) -> str:
        """Return the ID of a Service's load balancer; empty without one."""
        return services.balancer_id(self.balanced()[name])


def write_files(folder: pathlib.Path, conf: str) -> None:
    """Have examples, programs, and the files that pages name."""
    (folder / "dist").symlink_to(pexes.beside("mooring").parent.absolute())
    shutil.copytree("docs/examples", folder / "docs/examples")
    (folder / "new-cloud.conf").write_text(f"{conf}\n# rotated\n")
    lab = folder / "home/.local/state/mooring/lab"
    lab.mkdir(parents=True)
    (lab / "cloud.conf").write_text(conf)


def delete_servers(mine: tenant.Tenant) -> None:
    """Delete the servers of a project: their ports could not be deleted else."""
    for server in mine.items():
        mine.delete(server.id)
    waiting.until("no servers", lambda: not mine.items())


def conf_of(
    where: places.Places, account: accounts.Account, mine: tenant.Tenant
) -> str:
    """Return the cloud.conf of the reference."""
    network = mine.connection.network
    with cloud.sentences():
        public = network.find_network(seed_cloud.PUBLIC_NETWORK, ignore_missing=False)
        inside = network.find_network(tenant.NETWORK, ignore_missing=False)
    settings = {
        "subnet-id": str(inside.subnet_ids[0]),
        "floating-network-id": str(public.id),
    }
    return reference.cloud_conf(where, account, settings)


@pytest.fixture(scope="module")
def reader(
    lease: leases.Lease,
    where: places.Places,
    project: openstack_testing.MakeProject,
    ccm_pex: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Reader]:
    """Start a cluster that the reference serves, with two Services."""
    groups = [reference.GROUP, helm.GROUP, control_plane.SCHEDULER_GROUP]
    programs.build(where, groups, testing.shown())
    account, mine = project("pages")
    folder = tmp_path_factory.mktemp("pages")
    with contextlib.ExitStack() as ends:
        ends.callback(balancers.clear, mine.connection)
        place = ends.enter_context(testing.second_control_plane(lease, "pages"))
        control_plane.start_scheduler(place, testing.shown())
        ends.callback(delete_servers, mine)
        mine.boot_all(NODES)
        conf = conf_of(where, account, mine)
        env = user_shell.environment(folder, place)
        write_files(folder, conf)
        api = cluster.connect(control_plane.admin_kubeconfig(place))
        ccm = pod_runner.Program("openstack-ccm", pexes.command(ccm_pex))
        program = programs.path(where, reference.CCM)
        runner = pod_runner.PodRunner(
            place,
            api,
            NODES,
            [ccm, pod_runner.Program(reference.CCM, [str(program)])],
            where.port_base + RUNNER_PORT,
        )
        runner.register()
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "cloud-config", "namespace": "kube-system"},
            "stringData": {"cloud.conf": conf},
        }
        control_plane.apply_manifests(place, yaml.safe_dump(secret))
        control_plane.apply_manifests(place, MANIFEST)
        ends.enter_context(runner.running())
        user = services.Services(api, "default")
        new_reader = Reader(folder, env, services=user, connection=mine.connection)
        user.make("web")
        user.make("inner", {keys.INTERNAL: "true"})
        waiting.until("addresses by the reference", new_reader.are_served)
        waiting.until("members by the reference", new_reader.have_members)
        yield new_reader
        print("\n".join(runner.problems[-5:]))


def test_changed_over_without_a_change_of_any_load_balancer(reader: Reader) -> None:
    """Only tags are added; addresses stay."""
    before, addresses = inventory.take(reader.connection), reader.addresses()
    for section in BY_HAND:
        reader.follow("docs/how-to/change-over.md", section)
    # The annotation of a Service is written before the tags.
    waiting.until("no planned change", reader.is_in_sync, poll_s=5)
    assert reader.are_owned()
    changes = inventory.changes(before, inventory.take(reader.connection))
    for change in changes:
        print(change)
    unexpected = [c for c in changes if c.field != "tags" or not c.is_addition]
    assert unexpected == []
    assert changes
    assert reader.addresses() == addresses


def test_back_to_the_reference_by_hand(reader: Reader) -> None:
    """The reference finds nothing to change, and serves a new Service."""
    before, addresses = inventory.take(reader.connection), reader.addresses()
    reader.follow("docs/how-to/change-over.md", "Back")
    reader.services.make("later", {keys.INTERNAL: "true"})
    waiting.until("an address of the new Service", reader.are_served)
    assert changed(before, reader) == []
    assert reader.balancer_id("later")
    kept = {n: a for n, a in reader.addresses().items() if n != "later"}
    assert kept == addresses


def changed(before: inventory.Inventory, reader: Reader) -> list[inventory.Change]:
    """Return the changes of objects that existed before."""
    after = inventory.take(reader.connection)
    return [
        change
        for change in inventory.changes(before, after)
        if change.id in before.get(change.kind, {})
    ]


def test_migrated_to_the_chart(reader: Reader) -> None:
    """The page and the commands that it prints; only tags are added."""
    page = "docs/migrate.md"
    before, addresses = inventory.take(reader.connection), reader.addresses()
    steps = reader.follow(page, "1. Write the values")
    (reader.folder / STEPS).write_text(steps)
    reader.follow(page, "2. See what would change")
    for command in user_shell.printed(steps, "Stop the reference"):
        reader.run(command)
    reader.follow(page, "4. Install the chart")
    reader.follow(page, "5. Check")
    waiting.until("no planned change", reader.is_in_sync, poll_s=5)
    assert reader.are_owned()
    changes = changed(before, reader)
    assert [x for x in changes if x.field != "tags" or not x.is_addition] == []
    assert reader.addresses() == addresses


def test_the_other_pages_are_followed(reader: Reader) -> None:
    """Troubleshooting, upgrade, credentials, sharing, examples and the tutorial."""
    for name in ("troubleshoot", "upgrade", "rotate-credentials"):
        reader.follow(f"docs/how-to/{name}.md")
    page = "docs/how-to/share-a-load-balancer.md"
    follow_sharing(reader, page)
    first, second = map(reader.balancer_id, ("shared-owner", "shared-user"))
    assert first == second != ""
    reader.follow("docs/examples/README.md")
    reader.follow("docs/tutorials/first-cluster.md")


def follow_sharing(reader: Reader, page: str) -> None:
    """Follow the page; its reader replaces the ID before the last command."""
    commands = [c for b in pages.blocks(pathlib.Path(page)) for c in b.commands()]
    for command in commands:
        output = reader.run(command)
        if command.startswith("kubectl get service shared-owner"):
            file = reader.folder / SHARED_USER
            file.write_text(file.read_text().replace(PLACEHOLDER_ID, output.strip()))
    waiting.until("an address of both", reader.are_served)


def test_rolled_back_to_an_earlier_version_and_to_the_reference(reader: Reader) -> None:
    """The reference finds nothing to change, and serves a new Service."""
    reader.follow("docs/how-to/roll-back.md", "To an earlier version")
    before, addresses = inventory.take(reader.connection), reader.addresses()
    reader.follow("docs/migrate.md", "Rollback")
    for command in user_shell.printed((reader.folder / STEPS).read_text(), "Roll back"):
        reader.run(command)
    reader.services.make("last", {keys.INTERNAL: "true"})
    waiting.until("an address of the new Service", reader.are_served)
    assert changed(before, reader) == []
    assert {n: a for n, a in reader.addresses().items() if n != "last"} == addresses


def test_installed_from_nothing_and_removed(reader: Reader) -> None:
    """The page for new clusters: Secret, chart, checks, further charts, removal."""
    reader.run("kubectl -n kube-system delete daemonset,secret --all")
    conf = reader.folder / "home/.local/state/mooring/lab/cloud.conf"
    shutil.copy(conf, reader.folder / "cloud.conf")
    output = reader.follow("docs/how-to/install.md")
    assert "FAIL" not in output
