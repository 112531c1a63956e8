"""Octavia and Neutron of lib/cloud/openstack/fake, as a part of the benches' cloud."""

import re
import time
from collections.abc import Mapping

from lib.cloud.openstack.fake import driver, session, wire

NEWEST_OCTAVIA = 30
Json = dict[str, object]


class WallClock(session.FakeClock):
    """The time that passes of itself, from 0."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._began

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class FakeBalancing:
    """Answers the calls of Octavia and Neutron. ground: what they hold."""

    def __init__(self) -> None:
        self.ground = driver.ground(session.FakeOpenStack(WallClock()))

    def answer(
        self, method: str, target: str, body: Json, headers: Mapping[str, str]
    ) -> tuple[int, bytes] | None:
        """Return status and body of a call; None: it is not for them."""
        match = re.match("/(load-balancer/v2|network/v2.0)/(.*)", target)
        if match is None:
            return None
        service = match[1].split("/")[0]
        url = f"fake://{service}/{match[2]}"
        call = wire.call_of(service, method, url, body, headers)
        answer = self.ground.cloud.respond(call)
        return answer.status, answer.content

    def versions(self, url: str) -> Json:
        """Return the document of versions: each minor one is at the same place."""
        href = f"{url}/load-balancer/v2"
        versions = [
            {
                "id": f"v2.{minor}",
                "status": "CURRENT" if minor == NEWEST_OCTAVIA else "SUPPORTED",
                "links": [{"rel": "self", "href": href}],
            }
            for minor in range(NEWEST_OCTAVIA + 1)
        ]
        return {"versions": versions}
