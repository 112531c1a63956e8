"""Whatever Keystone answers: only expected errors.

MOORING_FUZZ multiplies the number of answers; 50 gives 20,000.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from lib.cloud import errors
from lib.cloud.openstack.http import client
from tests.lib.cloud.openstack import mangling

ANSWERS = 400 * int(os.environ.get("MOORING_FUZZ", "1"))


def test_keystone(
    stand_in: Any, make_client: Callable[[], client.Client], clock: Any
) -> None:
    """Each client authenticates anew: a token, a catalogue, or an expected error."""
    mangled = mangling.Mangled(stand_in, "identity")
    observed: Counter[str] = Counter()
    leaks = 0
    for _ in mangled.until(ANSWERS, clock):
        api = make_client()
        try:
            api.version(client.Service.COMPUTE)
            observed["authenticated"] += 1
        except errors.CloudError as error:
            leaks += "hunter2" in str(error)
            observed[type(error).__name__] += 1
    print(f"{mangled.answered} malformed answers: {dict(observed)}")
    assert not leaks
    assert observed["authenticated"]
    assert observed["Unauthenticated"] + observed["Unavailable"]
