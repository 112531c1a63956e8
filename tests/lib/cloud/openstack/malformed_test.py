"""Whatever Keystone and Nova answer: only expected errors, and no absence.

MOORING_FUZZ multiplies the number of answers; 50 gives 20,000 of each service.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from lib.cloud import errors
from lib.cloud.model import Absent, Foreign, InstanceRef, Seen, Unknown
from lib.cloud.openstack import client, cloud
from tests.lib.cloud.openstack import mangling

ANSWERS = 400 * int(os.environ.get("MOORING_FUZZ", "1"))
REF = InstanceRef("node-1", "openstack:///s-1")
NAMED = InstanceRef("s-1-name", "")


def test_nova(stand_in: Any, make_instances: Any, make_server: Any, clock: Any) -> None:
    """The server exists all the time: it is never confirmed to be absent."""
    stand_in.servers = [make_server(f"s-{number}") for number in range(3)]
    instances: cloud.OpenStackInstances = make_instances()
    mangled = mangling.Mangled(stand_in, "compute")
    seen: Counter[str] = Counter()
    for _ in mangled.until(ANSWERS, clock):
        for found in (
            instances.observe([REF, NAMED], clock()),
            instances.look([REF]),
        ):
            for one in found.values():
                assert isinstance(one, Seen | Absent | Foreign | Unknown)
                seen[type(one).__name__] += 1
        try:
            assert instances.confirm_absent(REF) is False
            seen["not absent"] += 1
        except errors.CloudError as error:
            seen[type(error).__name__] += 1
    print(f"{mangled.answered} malformed answers: {dict(seen)}")
    assert seen["Seen"]
    assert seen["Unknown"]


def test_keystone(
    stand_in: Any, make_client: Callable[[], client.Client], clock: Any
) -> None:
    """Each client authenticates anew: a token, a catalogue, or an expected error."""
    mangled = mangling.Mangled(stand_in, "identity")
    seen: Counter[str] = Counter()
    leaks = 0
    for _ in mangled.until(ANSWERS, clock):
        api = make_client()
        try:
            api.version(client.Service.COMPUTE)
            seen["authenticated"] += 1
        except errors.CloudError as error:
            leaks += "hunter2" in str(error)
            seen[type(error).__name__] += 1
    print(f"{mangled.answered} malformed answers: {dict(seen)}")
    assert not leaks
    assert seen["authenticated"]
    assert seen["Unauthenticated"] + seen["Unavailable"]
