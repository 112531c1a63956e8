"""The chart cloud-data-discoverer: rendered, installed, changed and removed by helm."""

import pytest
import yaml

from lib.lab import errors, places
from lib.lab.charts import charts
from lib.lab.daemons import discoverer
from lib.lab.kube import control_plane
from tests.harness import deckhouse_names
from tests.lab.charts import installing, rendering

CHART = "cloud-data-discoverer"
CASE = installing.Case(
    chart=CHART,
    home=charts.PLATFORM,
    rights=lambda values: discoverer.permissions(
        manages_classes=values["storageClasses"]["manage"],
        creates_secret=values["createDiscoverySecret"],
        reader=False,
    ),
    readers=frozenset(
        {"access-to-cloud-data-discoverer", "access-to-cloud-data-discoverer-role"}
    ),
    replicas=1,
    plain="verticalPodAutoscaler=false,metrics.podMonitor.enabled=false,metrics.alerts=false",
    deckhouse=deckhouse_names.DeckhouseNames(
        CHART,
        "cloud-data-discoverer",
        "d8:cloud-provider-openstack:cloud-data-discoverer",
    ),
)
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("discoveryPeriod=1d", "'/discoveryPeriod': '1d'"),
    ("metrics.mode=plain", "'/metrics/mode'"),
    ("moduleConfig.instances.imageName=", "'/moduleConfig/instances/imageName'"),
    ("moduleConfig.zones={a,a}", "'/moduleConfig/zones': items at 0 and 1 are equal"),
    ("openstack.authURL=keystone", "'/openstack/authURL'"),
]
"""What is set, what helm must name."""
BAD_DVP = [
    ("parent.secretName=", "'/parent/secretName': ''"),
    ("parent.namespace=", "'/parent/namespace': minLength: got 0, want 1"),
    ("clusterUUID=", "'/clusterUUID': minLength: got 0, want 1"),
    ("openstack.password=x", "'/openstack/password': maxLength"),
    ("cloudConfig.secretName=x", "'/cloudConfig/secretName': maxLength"),
    ("storageClasses.exclude={[}", "'/storageClasses/exclude/0': '[' is not valid"),
    ("discoverySecret=A", "'/discoverySecret': 'A' does not match pattern"),
]
"""The same for DVP."""


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)


def test_bad_values_for_dvp_are_refused_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD_DVP, "dvp")


CATALOG = "instancetypescatalogs.deckhouse.io"


def older(change: str) -> str:
    """Return the manifest of an older CRD of the catalog. change: to its version."""
    folder = charts.folder(rendering.ROOT, CHART)
    file = folder / "crds/instancetypescatalogs.yaml"
    definition = yaml.safe_load(file.read_text())
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    item = schema["properties"]["instanceTypes"]["items"]["properties"]
    match change:
        case "version":
            version["name"] = "v1alpha0"
        case "fields":
            del item["rootDisk"], item["memory"]
        case "open":
            schema.pop("properties")
            schema["x-kubernetes-preserve-unknown-fields"] = True
    return yaml.safe_dump(definition)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("version", "version v1alpha1 is not served, but v1alpha0"),
        ("fields", "no field instanceTypes[].memory, instanceTypes[].rootDisk"),
        ("open", ""),
    ],
)
def test_an_older_crd_is_reported_before_anything_is_created(
    ground: installing.Ground, change: str, named: str
) -> None:
    """In one sentence; a CRD that keeps unknown fields is accepted."""
    control_plane.apply_manifests(ground.where, older(change))
    before = installing.until(ground.everything)
    folder = charts.folder(rendering.ROOT, CHART)
    values = charts.of(CHART)["secure-port"].values(rendering.ROOT)
    words = ("install", CHART, folder, "--namespace", charts.PLATFORM)
    more = ("--values", values, "--set", CASE.plain, "--dry-run=server")
    try:
        ground.helm(*words, *more[: None if change == "open" else -1], "--skip-crds")
        message = ""
    except errors.LabError as error:
        message = " ".join(str(error).split())
    print(change, message)
    if named:
        assert f"CustomResourceDefinition {CATALOG}: too old: " in message
    assert named in message
    assert not message or named
    assert installing.until(ground.everything) == before
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    ground.delete(f"{crds}/{CATALOG}")
    installing.until_none(
        lambda: {row for row in ground.everything() if row[2] == CATALOG}
    )


def test_installed_changed_and_removed(ground: installing.Ground) -> None:
    installing.installed_changed_removed(ground, CASE)


def test_without_the_kinds_of_others_nothing_is_created(
    ground: installing.Ground,
) -> None:
    installing.refused_without_kinds(ground, CASE)


def test_with_the_kinds_of_others(ground: installing.Ground, operators: None) -> None:
    del operators
    installing.with_kinds_of_others(ground, CASE)
