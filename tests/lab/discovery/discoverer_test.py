"""cloud-data-discoverer with a real cloud and a real API server, by its own account."""

import base64
import collections
import contextlib
import itertools
import json
import pathlib
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import discoverer
from lib.lab.daemons.discoverer import Daemon
from lib.lab.kube import control_plane
from lib.lab.openstack import accounts, cloud, layout, tenant
from lib.lab.run import processes, waiting
from tests.harness.kube import roles
from tests.harness.openstack import front
from tests.harness.openstack import seed_data as seeding
from tests.harness.openstack.seed_data import (
    BLOCK_STORAGE,
    COMPUTE,
    IMAGE,
    NETWORK,
    SeedData,
)

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
CLUSTER = str(uuid.uuid4())
DATA = ("d8-cloud-provider-discovery-data", "discovery-data.json")
INPUT = ("d8-provider-cluster-configuration", "cloud-provider-discovery-data.json")
CATALOG = "for-cluster-autoscaler"
GIVEN = {
    "zones": ["az1", "az3"],
    "instances": {"imageName": "image-7", "mainNetwork": "сеть"},
    "layout": "Standard",
}
AROUND = """
apiVersion: v1
kind: Namespace
metadata: {name: d8-cloud-provider-openstack}
---
apiVersion: v1
kind: Namespace
metadata: {name: d8-monitoring}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: d8-monitoring}
"""
STEPS = 5
CLAIM = "provisioned"
FLAGS = (
    "--manage-storage-classes",
    "--discovery-period=1s",
    "--orphaned-disk-min-age=30s",
)


@pytest.fixture(scope="module")
def account(project: MakeProject) -> accounts.Account:
    return project("discoverer")[0]


@pytest.fixture(scope="module")
def seed_data(where: places.Places, account: accounts.Account) -> Iterator[SeedData]:
    began = time.monotonic()
    with seeding.seeded(where, account, CLUSTER) as new_stock:
        print(f"the cloud was seeded in {time.monotonic() - began:.0f} s")
        yield new_stock
        began = time.monotonic()
    print(f"and cleared in {time.monotonic() - began:.0f} s")


@pytest.fixture(scope="module")
def entrance(where: places.Places) -> Iterator[front.Front]:
    with front.of(where).opened() as opened:
        yield opened


def volume(seed_data: SeedData, name: str) -> str:
    volumes: Any = seed_data.get(BLOCK_STORAGE, "/volumes/detail")
    return next(
        str(volume_["id"]) for volume_ in volumes["volumes"] if volume_["name"] == name
    )


def clear(api: client.Api) -> None:
    """Remove what a discoverer makes; another test may have left some, too."""
    for name in classes(api):
        remove(api, resources.STORAGE_CLASSES, name)
    remove(api, resources.INSTANCE_TYPES_CATALOGS, CATALOG)
    for name in (INPUT[0], DATA[0]):
        remove(api, resources.SECRETS, name, "kube-system")


@pytest.fixture(scope="module")
def ground(
    where: places.Places, api: client.Api, seed_data: SeedData
) -> Iterator[client.Api]:
    """A cluster with the chart's rights, the CRD, the installer's Secret and PVs."""
    control_plane.apply_manifests(where, AROUND)
    control_plane.apply_manifests(where, discoverer.permissions())
    crd = discoverer.chart("crds/instancetypescatalogs.yaml")
    control_plane.apply_manifests(where, crd)
    waiting.until("the CRD is served", lambda: is_served(api))
    clear(api)
    text = base64.b64encode(json.dumps(GIVEN).encode()).decode()
    secret = {"metadata": {"name": INPUT[0]}, "data": {INPUT[1]: text}}
    create(api, resources.SECRETS, secret, "kube-system")
    volumes = {
        "pvc-known": volume(seed_data, "pvc-known"),
        "data": volume(seed_data, "static"),
    }
    for name, handle in volumes.items():
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": handle},
        }
        body = {"metadata": {"name": name}, "spec": spec}
        create(api, resources.PERSISTENT_VOLUMES, body)
    seed_data.volume(f"pvc-{claim(api)}", CLUSTER)
    yield api
    remove(api, resources.CLAIMS, CLAIM, "default")
    for name in volumes:
        remove(api, resources.PERSISTENT_VOLUMES, name)
    clear(api)


def claim(api: client.Api) -> str:
    """Create a claim that no provisioner serves; return its UID."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    body = {"metadata": {"name": CLAIM}, "spec": spec}
    create(api, resources.CLAIMS, body, "default")
    stored = api.read(resources.CLAIMS, CLAIM, "default", timeout_s=10)
    return str(json.loads(stored)["metadata"]["uid"])


def is_served(api: client.Api) -> bool:
    try:
        kind = resources.INSTANCE_TYPES_CATALOGS
        api.list_page(kind, query={}, timeout_s=10)
    except (kube_errors.NotFound, kube_errors.Unavailable):
        return False
    return True


def create(
    api: client.Api,
    kind: resources.Resource,
    body: Mapping[str, object],
    namespace: str | None = None,
) -> None:
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
    api.create(kind, json.dumps(whole).encode(), namespace, timeout_s=10)


def remove(
    api: client.Api, kind: resources.Resource, name: str, namespace: str | None = None
) -> None:
    with contextlib.suppress(kube_errors.NotFound):
        api.delete(kind, name, namespace, timeout_s=10)


def published(api: client.Api) -> Any:
    try:
        read = api.read(resources.SECRETS, DATA[0], "kube-system", timeout_s=10)
    except kube_errors.NotFound:
        return None
    return json.loads(base64.b64decode(json.loads(read)["data"][DATA[1]]))


def stored_catalog(api: client.Api) -> Any:
    kind = resources.INSTANCE_TYPES_CATALOGS
    return json.loads(api.read(kind, CATALOG, timeout_s=10))["instanceTypes"]


def classes(api: client.Api) -> dict[str, Any]:
    page = api.list_page(resources.STORAGE_CLASSES, query={}, timeout_s=10)
    return {
        storage_class["metadata"]["name"]: storage_class
        for storage_class in json.loads(page)["items"]
    }


def defaults(api: client.Api) -> list[str]:
    mark = "storageclass.kubernetes.io/is-default-class"
    return [
        name
        for name, storage_class in classes(api).items()
        if storage_class["metadata"].get("annotations", {}).get(mark) == "true"
    ]


def failing(daemon: Daemon) -> frozenset[str]:
    return daemon.raised("mooring_discovery_step_error", "step")


def go_by(daemon: Daemon, count: int) -> None:
    """Wait until so many whole cycles have gone by; it must be well all the time."""
    enough = daemon.passes() + (count + 1) * STEPS

    def gone_by() -> bool:
        assert daemon.ask("/healthz") == (200, "ok")
        return daemon.passes() >= enough

    waiting.until(f"{count} cycles", gone_by)


@pytest.fixture(scope="module")
def daemon(
    where: places.Places,
    ground: client.Api,
    entrance: front.Front,
    account: accounts.Account,
    pex: pathlib.Path,
) -> Iterator[Daemon]:
    del ground
    env = {
        "OS_AUTH_URL": entrance.url(layout.KEYSTONE, "/v3"),
        "OS_DOMAIN_NAME": "Default",
        "OS_TENANT_NAME": account.project,
        "OS_USERNAME": account.user,
        "OS_PASSWORD": layout.PASSWORD,
        "OS_REGION": layout.REGION,
        "CLUSTER_UUID": CLUSTER,
    }
    with discoverer.running(where, pex, discoverer.NAME, env, FLAGS) as running:
        waiting.until("a whole cycle", lambda: running.passes() >= STEPS)
        yield running


def unique(names: Collection[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))


def listed(seed_data: SeedData, service: str, path: str) -> Any:
    """Return what a call answers, without the object around it."""
    whole = seed_data.get(service, path)
    return next(value for value in whole.values() if isinstance(value, list | dict))


def expected(seed_data: SeedData) -> dict[str, object]:
    """Put together, from what the APIs say, what is to be published."""
    flavors = listed(seed_data, COMPUTE, "/flavors/detail")
    images = listed(seed_data, IMAGE, "/images?limit=1000")
    first = {image_["name"]: image_ for image_ in reversed(images) if image_["name"]}
    types = listed(seed_data, BLOCK_STORAGE, "/types")
    default = listed(seed_data, BLOCK_STORAGE, "/types/default")["id"]
    networks = listed(seed_data, NETWORK, "/networks")
    groups = listed(seed_data, NETWORK, "/security-groups")
    spread = listed(seed_data, COMPUTE, "/os-server-groups")
    names = unique([image_["name"] for image_ in images])
    return {
        "apiVersion": "deckhouse.io/v1alpha1",
        "kind": "OpenStackCloudProviderDiscoveryData",
        "flavors": [flavor["name"] for flavor in flavors],
        "additionalNetworks": unique([network["name"] for network in networks]),
        "additionalSecurityGroups": unique([group["name"] for group in groups]),
        "defaultImageName": "image-7",
        "images": names,
        "mainNetwork": "сеть",
        "zones": ["az1", "az3"],
        "volumeTypes": [volume_type(type_, default) for type_ in types],
        "serverGroups": unique([group["name"] for group in spread]),
        "flavorsDetails": [
            {key: flavor[key] for key in ("name", "ram", "vcpus", "disk")}
            for flavor in flavors
        ],
        "imagesDetails": [image(first[name]) for name in names],
    }


def volume_type(native_type: Mapping[str, Any], default: str) -> dict[str, object]:
    native = ("id", "name", "description", "extra_specs", "is_public", "qos_specs_id")
    shown = ("id", "name", "description", "extraSpecs", "isPublic", "qosSpecID")
    whole = dict(zip(shown, map(native_type.get, native), strict=True))
    whole["isDefault"] = native_type["id"] == default
    return {key: value for key, value in whole.items() if value}


def image(native_image: Mapping[str, Any]) -> dict[str, object]:
    native = ("id", "name", "created_at", "cinder_img_volume_type")
    shown = ("id", "name", "createdAt", "defaultVolumeType")
    whole = dict(zip(shown, map(native_image.get, native), strict=True))
    return {key: value for key, value in whole.items() if value}


def bytes_of(quantity: str) -> int:
    powers = {"Mi": 2, "Gi": 3, "Ti": 4}
    power = powers.get(quantity[-2:], 0)
    return int(quantity[:-2] if power else quantity) * int(1024**power)


def writes(where: places.Places) -> collections.Counter[tuple[str, str]]:
    return collections.Counter(
        (event["verb"], event["objectRef"]["resource"])
        for event in audited(where)
        if event["verb"] not in ("get", "list", "watch")
    )


def audited(where: places.Places) -> Iterator[dict[str, Any]]:
    user = "system:serviceaccount:" + ":".join(discoverer.ACCOUNT)
    for line in (where.log / "audit.log").read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == user and event["stage"] == "ResponseComplete":
            yield event


def test_what_is_published_is_what_the_apis_say(
    daemon: Daemon, ground: client.Api, seed_data: SeedData
) -> None:
    waiting.until("all is published", lambda: published(ground) == expected(seed_data))
    document = published(ground)
    assert len(document["flavors"]) >= seeding.FLAVORS
    assert {"большой", "m1.tiny"} <= set(document["flavors"])
    assert {"образ", "image-7"} <= set(document["images"])
    assert len(document["images"]) == len(set(document["images"])) >= seeding.NAMED
    assert {"сеть", "twice", "net-9", "public"} <= set(document["additionalNetworks"])
    assert {"default", "группа"} <= set(document["additionalSecurityGroups"])
    assert document["serverGroups"] == ["spread"]
    assert "" not in [*document["images"], *document["additionalNetworks"]]
    sizes = {details["name"]: details for details in document["flavorsDetails"]}
    offered = stored_catalog(ground)
    assert [instance_type["name"] for instance_type in offered] == sorted(
        document["flavors"]
    )
    for instance_type in offered:
        assert (
            bytes_of(instance_type["memory"])
            == sizes[instance_type["name"]]["ram"] * 2**20
        )
        assert int(instance_type["cpu"]) == sizes[instance_type["name"]]["vcpus"]
    types_by_class = {
        name: storage_class["parameters"]["type"]
        for name, storage_class in classes(ground).items()
    }
    types = [volume_type_["name"] for volume_type_ in document["volumeTypes"]]
    assert types_by_class == {
        "ssd-r1" if t == "SSD R1" else t.strip("_").lower(): t for t in types
    }
    assert defaults(ground) == [min(types_by_class)]
    assert failing(daemon) == set()


def test_a_cycle_takes_few_calls_no_token_and_writes_nothing(
    where: places.Places, daemon: Daemon, entrance: front.Front
) -> None:
    logins = [c for c in entrance.calls if c.path.endswith("/auth/tokens")]
    assert len(logins) == 1
    before, wrote = len(entrance.calls), writes(where)
    passes = daemon.passes()
    go_by(daemon, 3)
    cycles = (daemon.passes() - passes) / STEPS
    calls = entrance.calls[before:]
    assert writes(where) == wrote
    assert not [c for c in calls if "/auth/" in c.path]
    process = processes.find(where, discoverer.NAME)
    assert process is not None
    rss = process.memory_info().rss / 2**20
    sent = sum(call.size_bytes for call in calls)
    print(
        f"{cycles:.0f} cycles: {len(calls) / cycles:.1f} cloud calls and"
        f" {sent / cycles / 1000:.0f} kB each; RSS {rss:.0f} MiB"
    )
    # One list each of nine, and the empty page that ends the server groups: each once
    # in a cycle, and the count may begin or end within one.
    counts = collections.Counter(call.path for call in calls)
    (flavors,) = (n for path, n in counts.items() if "/flavors/detail" in path)
    assert len(counts) <= 10, counts
    assert all(abs(number - flavors) <= 1 for number in counts.values()), counts


DOWN: Mapping[str, tuple[Collection[str], Collection[str]]] = {
    layout.KEYSTONE: (set(), set()),
    layout.NOVA: (
        {"instance_types", "discovery_data"},
        {"instance_types", "discovery_data"},
    ),
    layout.NEUTRON: ({"discovery_data"}, {"discovery_data"}),
    layout.GLANCE: ({"discovery_data"}, {"discovery_data"}),
    layout.CINDER: (
        {"discovery_data", "orphaned_disks", "storage_classes"},
        {"discovery_data", "disks_meta"},
    ),
}
"""What fails when a service is down: our steps, the reference's types."""


def test_each_service_may_be_down_for_three_cycles(
    where: places.Places, daemon: Daemon, entrance: front.Front, ground: client.Api
) -> None:
    """What was published stays; other steps go on; all comes back by itself."""
    before = (published(ground), stored_catalog(ground), classes(ground))
    rows = []
    for service, (steps, types) in DOWN.items():
        wrote = writes(where)
        entrance.down.add(service)
        try:
            go_by(daemon, 3)
            observed = (
                failing(daemon),
                daemon.raised("cloud_data_discovery_cloud_request_error", "type"),
            )
        finally:
            entrance.down.discard(service)
        began = time.monotonic()
        waiting.until(f"{service} is used again", lambda: failing(daemon) == set())
        rows.append((service, observed, time.monotonic() - began))
        assert observed == (steps, types), service
        assert writes(where) == wrote
        assert (published(ground), stored_catalog(ground), classes(ground)) == before
    for service, observed, took_s in rows:
        failed_steps = ", ".join(sorted(observed[0])) or "nothing"
        print(f"{service:9} down: fails {failed_steps:52} healed in {took_s:4.1f} s")
    untouched = {layout.PLACEMENT, layout.OCTAVIA}
    assert {row[0] for row in rows} == set(layout.SERVICES) - untouched


def test_a_cloud_without_security_groups(
    where: places.Places, daemon: Daemon, entrance: front.Front, ground: client.Api
) -> None:
    """An empty list is published first, but never takes the place of a full one."""
    full = published(ground)

    def without(service: str, path: str, headers: dict[str, str]) -> str:
        del headers
        is_groups = service == layout.NEUTRON and "/security-groups" in path
        # Neutron's own answer to what it does not know.
        return (
            path.replace("/security-groups", "/no-such-things") if is_groups else path
        )

    usual, entrance.before = entrance.before, without
    try:
        go_by(daemon, 2)
        assert published(ground) == full
        assert failing(daemon) == {"discovery_data"}
        assert "implausible" in daemon.errors()
        remove(ground, resources.SECRETS, DATA[0], "kube-system")
        expected = {**full, "additionalSecurityGroups": []}
        waiting.until("published without", lambda: published(ground) == expected)
        waiting.until("all well", lambda: failing(daemon) == set())
    finally:
        entrance.before = usual
    waiting.until("published with them again", lambda: published(ground) == full)
    assert writes(where)["update", "secrets"] >= 1


def test_the_token_may_end_in_mid_cycle_and_be_of_an_application(
    where: places.Places,
    daemon: Daemon,
    entrance: front.Front,
    ground: client.Api,
    seed_data: SeedData,
    account: accounts.Account,
    pex: pathlib.Path,
) -> None:
    """A log-in more, and no failure. Two discoverers may run side by side."""
    del daemon
    lists = itertools.count()
    ended: set[str] = set()

    def end(service: str, path: str, headers: dict[str, str]) -> str:
        """Revoke the token after three lists."""
        if service != layout.KEYSTONE and path.count("/") > 2 and next(lists) == 3:
            ended.add(headers["X-Auth-Token"])
        if headers.get("X-Auth-Token") in ended:
            headers["X-Auth-Token"] = "ended"
        return path

    with contextlib.closing(cloud.connect(where, account)) as mine:
        identity = cloud.identity_of(mine)
        user = mine.current_user_id or ""
        credential = identity.create_application_credential(
            user, f"robot-{uuid.uuid4()}"
        )
        env = {
            "OS_AUTH_URL": entrance.url(layout.KEYSTONE),
            "OS_REGION": layout.REGION,
            "OS_APPLICATION_CREDENTIAL_ID": credential.id,
            "OS_APPLICATION_CREDENTIAL_SECRET": credential.secret,
            "CLUSTER_UUID": CLUSTER,
        }
        before = len(entrance.calls)
        usual, entrance.before = entrance.before, end
        name = f"{discoverer.NAME}-2"
        extra = (*FLAGS, "--default-storage-class=slow")
        try:
            with discoverer.running(where, pex, name, env, extra) as other:
                waiting.until("a whole cycle", lambda: other.passes() >= STEPS)
                waiting.until("well", lambda: failing(other) == set())
                waiting.until(
                    "another default class", lambda: defaults(ground) == ["slow"]
                )
                failures = other.samples("mooring_cloud_requests_total")
                go_by(other, 1)
                assert credential.secret not in other.log()
        finally:
            entrance.before = usual
            identity.delete_application_credential(user, credential)
    calls = entrance.calls[before:]
    logins = [c for c in calls if c.path.endswith("/auth/tokens")]
    refused = [c.service for c in calls if c.status == 401]
    print(f"refused in mid-cycle: {refused}; log-ins: {len(logins)}")
    # Services are read side by side: each that is refused may log in for itself.
    assert 1 <= len(refused) <= 8
    assert 2 <= len(logins) <= 5
    assert not [labels for labels, n in failures if labels["outcome"] != "ok" and n]
    assert published(ground) == expected(seed_data)


def test_orphans_are_told_by_name_and_by_handle(
    daemon: Daemon, seed_data: SeedData
) -> None:
    """Volumes of another cluster are not reported; young ones only when they age.

    Nor is the volume of a claim that is still being provisioned.
    """
    expected = (({"id": volume(seed_data, "pvc-lost"), "name": "pvc-lost"}, 1.0),)
    series = "cloud_data_discovery_orphaned_disk_info"
    waiting.until("the orphan", lambda: daemon.samples(series) == expected)


def test_names_that_clash_or_vanish_are_told_and_nothing_is_lost(
    daemon: Daemon, ground: client.Api, seed_data: SeedData, entrance: front.Front
) -> None:
    """A type is deleted: so is its class, a cycle later. Other classes stay."""
    foreign = {
        "metadata": {"name": "theirs"},
        "provisioner": "example.com/nfs",
        "parameters": {"type": "old"},
    }
    create(ground, resources.STORAGE_CLASSES, foreign)
    before = classes(ground)
    odd = [seed_data.volume_type(name) for name in ("тип", "ssd-r1")]
    waiting.until("it is told", lambda: failing(daemon) == {"storage_classes"})
    go_by(daemon, 1)
    assert classes(ground) == before
    for message in ('"тип"', 'results in the same StorageClass "ssd-r1"'):
        assert message in daemon.errors()
    for volume_type_ in odd:
        seed_data.delete(BLOCK_STORAGE, f"/types/{volume_type_}")
    waiting.until("healed", lambda: failing(daemon) == set())
    types = listed(seed_data, BLOCK_STORAGE, "/types")
    (removed_id,) = (
        volume_type_["id"] for volume_type_ in types if volume_type_["name"] == "SSD R1"
    )
    seed_data.delete(BLOCK_STORAGE, f"/types/{removed_id}")
    waiting.until("its class is gone", lambda: "ssd-r1" not in classes(ground))
    assert f"/types/{removed_id}" in "".join(call.path for call in entrance.calls)
    assert {
        name: storage_class
        for name, storage_class in before.items()
        if name != "ssd-r1"
    } == classes(ground)


def test_instance_types_follow_the_flavors(
    daemon: Daemon, ground: client.Api, seed_data: SeedData
) -> None:
    del daemon
    seed_data.flavor(seeding.FLAVORS)
    name = f"size-{seeding.FLAVORS}"
    waiting.until(
        "the new flavor",
        lambda: name
        in [instance_type["name"] for instance_type in stored_catalog(ground)],
    )
    waiting.until("published", lambda: published(ground) == expected(seed_data))


def test_metrics_are_open_on_loopback_and_guarded_elsewhere(
    daemon: Daemon, api: client.Api
) -> None:
    """By TokenReview and SubjectAccessReview, on the right that monitoring has."""

    def token(namespace: str, name: str) -> str:
        path = resources.SERVICE_ACCOUNTS.path(namespace, name, "token")
        answer = api.request("POST", path, body=b"{}", timeout_s=10)
        return str(json.loads(answer)["status"]["token"])

    def ask(path: str, bearer: str | None) -> tuple[int, str]:
        return daemon.ask(path) if bearer is None else daemon.ask_securely(path, bearer)

    rows = []
    for who, bearer, expected in (
        ("loopback, nobody", None, 200),
        ("secure port, nobody", "", 401),
        ("secure port, a forged token", "forged", 401),
        ("secure port, another account", token(*discoverer.ACCOUNT), 403),
        ("secure port, prometheus", token("d8-monitoring", "prometheus"), 200),
    ):
        status, text = ask("/metrics", bearer)
        rows.append((who, status))
        assert status == expected, who
        assert ("cloud_data_discovery_" in text) == (expected == 200)
        for path in ("/healthz", "/livez", "/readyz"):
            assert ask(path, bearer) == (200, "ok")
    for who, status in rows:
        print(f"{who:32} {status}")
    assert "every 1s" in daemon.ask("/")[1]


def test_the_rights_of_the_chart_are_exactly_those_that_are_used(
    where: places.Places, daemon: Daemon
) -> None:
    """Both ways: nothing is refused, and nothing is granted that is not used."""
    granted = rights()
    used = set()
    for event in audited(where):
        of = event["objectRef"]
        assert event["responseStatus"]["code"] not in (401, 403), event
        whole = (event["verb"], of["resource"], "")
        named = (event["verb"], of["resource"], of.get("name", ""))
        used.add(whole if whole in granted else named)
    for right in sorted(granted | used):
        print(f"{' '.join(right):60} {right in granted!s:6} {right in used}")
    assert used == granted


def rights() -> set[tuple[str, str, str]]:
    """Return verb, resource and name ("" for any) of what our own roles allow."""
    documents = yaml.safe_load_all(discoverer.permissions(reader=False))
    granted = roles.rights(item for item in documents if "rules" in item)
    return {(verb, resource, name) for _, resource, verb, name in granted}
