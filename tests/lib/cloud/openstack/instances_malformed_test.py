"""Whatever Nova answers: only expected errors, and no absence.

MOORING_FUZZ multiplies the number of answers; 50 gives 20,000.
"""

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from lib.cloud import errors
from lib.cloud.model import Absent, InstanceRef, NotManaged, Seen, Unknown
from tests.lib.cloud.openstack import mangling

if TYPE_CHECKING:
    from lib.cloud.openstack.instances import cloud

ANSWERS = 400 * int(os.environ.get("MOORING_FUZZ", "1"))
REF = InstanceRef("node-1", "openstack:///s-1")
NAMED = InstanceRef("s-1-name", "")


def test_nova(stand_in: Any, make_instances: Any, make_server: Any, clock: Any) -> None:
    """The server exists all the time: it is never confirmed to be absent."""
    stand_in.servers = [make_server(f"s-{number}") for number in range(3)]
    instances: cloud.OpenStackInstances = make_instances()
    mangled = mangling.Mangled(stand_in, "compute")
    observed: Counter[str] = Counter()
    for _ in mangled.until(ANSWERS, clock):
        for observations in (
            instances.observe([REF, NAMED], clock()),
            instances.look([REF]),
        ):
            for observation in observations.values():
                assert isinstance(observation, Seen | Absent | NotManaged | Unknown)
                observed[type(observation).__name__] += 1
        try:
            assert instances.confirm_absent(REF) is False
            observed["not absent"] += 1
        except errors.CloudError as error:
            observed[type(error).__name__] += 1
    print(f"{mangled.answered} malformed answers: {dict(observed)}")
    assert observed["Seen"]
    assert observed["Unknown"]
