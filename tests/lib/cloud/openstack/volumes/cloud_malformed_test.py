"""Whatever Cinder answers: only expected errors, and no volume is taken for absent.

MOORING_FUZZ multiplies the number of answers; 50 gives 20,000.
"""

import os
from collections import Counter
from typing import Any

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.volumes import ById, ByName, VolumeId
from tests.lib.cloud.openstack import mangling

ANSWERS = 400 * int(os.environ.get("MOORING_FUZZ", "1"))


def test_cinder(stand_in: Any, cinder: Any, make_volumes: Any, clock: Any) -> None:
    """The volume exists all the time, and a direct read never says otherwise."""
    volume_id = cinder.put(1)
    volumes = make_volumes()
    mangled = mangling.Mangled(stand_in, "volume")
    by_id, by_name = ById(VolumeId(volume_id), in_full=True), ByName("pvc-1")
    observed: Counter[str] = Counter()
    for _ in mangled.until(ANSWERS, clock):
        result = volumes.observe([by_id, by_name]).by_ref
        assert result[by_id] != (), "an existing volume is taken for absent"
        for row in result.values():
            observed["Unknown" if isinstance(row, Unknown) else "seen"] += 1
        try:
            volumes.listing()
            observed["listed"] += 1
            volumes.capacity("", ())
            observed["capacity"] += 1
        except errors.CloudError as error:
            observed[type(error).__name__] += 1
    print(f"{mangled.answered} malformed answers: {dict(observed)}")
    assert observed["seen"]
    assert observed["Unknown"]
