"""Cost of many VMs in the client: requests are asserted, seconds and MB printed."""

import pathlib
import subprocess
import sys
import time
from collections.abc import Mapping

from lib.cloud.zvirt import http
from tests.lib.cloud.zvirt.engines import Simulated, engine
from tests.lib.lab.zvirt import many
from tests.lib.lab.zvirt.stage import Stage

FOLLOW = ("disk_attachments", "nics", "tags")
MEMORY = """
import sys
from lib.cloud.zvirt import client, config, http
from tests.lib.cloud.zvirt.engines import Scripted, engine

def page(method, path, body):
    number = int(path.partition("page+")[2].partition("&")[0])
    with open(f"{sys.argv[1]}/{number}.xml", "rb") as file:
        return http.EngineResponse(200, file.read())

def megabytes():
    # Not of getrusage, which knows the parent's peak.
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024

subject = engine(Scripted(page))
subject.list("vms", {"search": "page 1"})
before = megabytes()
items = subject.list_all("vms", follow=("disk_attachments", "nics", "tags"))
assert len(items) == 5000
print(megabytes() - before)
"""


def test_a_thousand_vms_are_six_requests() -> None:
    stage = Stage()
    many.fill(stage.engine, 1000)
    exchange = Simulated(stage)
    bodies: list[http.EngineResponse] = []

    def recorded(
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> http.EngineResponse:
        bodies.append(exchange(method, url, headers, body, timeout_s))
        return bodies[-1]

    items = engine(recorded).list_all("vms", follow=FOLLOW)
    assert len({item.id for item in items}) == 1000
    assert exchange.requests["GET /ovirt-engine/api/vms"] <= 6
    replies = iter(bodies)
    began = time.process_time()
    engine(lambda *words: next(replies)).list_all("vms", follow=FOLLOW)
    seconds = time.process_time() - began
    print(f"1,000 VMs: {len(bodies) - 1} pages, {seconds:.2f} s of processor time")


def test_memory_of_5000_vms(tmp_path: pathlib.Path) -> None:
    stage = Stage()
    many.fill(stage.engine, 200)
    page = stage.reply("GET", f"vms?follow={','.join(FOLLOW)}").body
    for number in range(1, 26):
        # IDs of the stage begin with zeros.
        prefix = f"{number:08x}-0000-4000-8000-".encode()
        body = page.replace(b"00000000-0000-4000-8000-", prefix)
        (tmp_path / f"{number}.xml").write_bytes(body)
    (tmp_path / "26.xml").write_bytes(b"<vms/>")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)],
        env={"PYTHONPATH": ":".join(part for part in sys.path if part)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(f"client: {float(done.stdout):.0f} MB more with 5,000 VMs")
