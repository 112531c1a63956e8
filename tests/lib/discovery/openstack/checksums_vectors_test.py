"""Every vector of the reference that is known, in one table."""

import collections

from lib.discovery import storage_classes
from lib.discovery.openstack import checksums, machine_class, model

UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"
CLUSTER = model.ClusterFacts(UUID, prefix="sea")
LARGE = model.InstanceClass("m1.large")
UBUNTU = model.InstanceClass("m1.large", "ubuntu", 20, "shared")
SHARED = "e6713f8dcd376074424dc0431962c5fe6bd6e32ea556891529143ef410a52312"
ALONE = "4ee4cb025ad7205893214aaea510ec49717f324b110688727f60f98bb6e823d4"


def worker(zone: str) -> model.Group:
    return model.Group("worker", zone, LARGE)


# What is named, from what, what we make of it, what the reference makes.
VECTORS = [
    ("StorageClass", name, storage_classes.name_of(name), expected)
    for name, expected in (
        ("__DEFAULT__", "default"),
        ("SSD R1", "ssd-r1"),
        ("-Xx__$()? -foo-", "xx--foo"),
        ("  YY fast SSD-foo.", "yy-fast-ssd-foo"),
    )
]
VECTORS += [
    ("machine class", zone, machine_class.name_of(CLUSTER, worker(zone)), expected)
    for zone, expected in (("zonea", "worker-02320933"), ("zoneb", "worker-6bdb5b0d"))
]
VECTORS += [
    (engine, str(spec), checksum(spec), expected)
    for engine, checksum in (("mcm", checksums.mcm), ("capi", checksums.capi))
    for spec, expected in ((LARGE, ALONE), (UBUNTU, SHARED))
]
ROWS = {
    "StorageClass": 4,
    "machine class": 2,
    "mcm": 2,
    "capi": 2,
}


def test_every_vector_holds() -> None:
    """What stands in a cluster is found again under its name, and nothing is rolled."""
    for what, arguments, created, expected in VECTORS:
        verdict = "ok" if created == expected else f"MUST BE {expected}"
        print(f"{what:18} {arguments[:44]!r:48} {created[:20]:22} {verdict}")
    assert [row for row in VECTORS if row[2] != row[3]] == []
    assert collections.Counter(row[0] for row in VECTORS) == ROWS
