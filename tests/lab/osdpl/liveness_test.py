"""Liveness and readiness of osdpl-controller, as a kubelet asks for them.

The loop that hangs is one thread of the real program, stopped as by a debugger.
"""

import functools
import http.client
import time

from lib.lab.osdpl import controller, deployment
from lib.lab.run import processes, waiting
from lib.osdpl.daemon import controller as program
from tests.harness.daemons import debugging, probing
from tests.harness.osdpl.stage import OperatorStage

API_SERVER = "kube-apiserver"
FAILED = http.client.INTERNAL_SERVER_ERROR
PROBES = 6
LOOP = "reconcile"


def ask(site: OperatorStage, path: str) -> tuple[int, str]:
    return controller.ask(site.where.port(controller.NAME), path)


def test_neither_depends_on_charts_or_workloads(
    site: OperatorStage, source: str
) -> None:
    """A source that does not answer, then workloads that never become Ready."""
    site.hold("mariadb/server")
    nowhere = deployment.manifest("http://127.0.0.1:9")
    rows = {
        "no source": (nowhere, is_failed),
        "nothing Ready": (deployment.manifest(source), awaits),
    }
    for name, (document, is_reached) in rows.items():
        site.apply(document)
        site.wait(name, functools.partial(is_reached, site))
        site.stop()
        site.start()  # it returns once the controller is ready
        site.wait(f"{name}, after a restart", functools.partial(is_reached, site))
        with probing.Prober(lambda path: ask(site, path)).running() as prober:
            waiting.until(f"probes: {name}", lambda: prober.probed >= PROBES)
        print(f"{name:14} {prober.probed} probes, {len(prober.unwell)} failed")
        assert prober.unwell == []
        assert not site.observe().is_complete


def is_failed(site: OperatorStage) -> bool:
    return site.condition("Applied").get("reason") == "Failed"


def awaits(site: OperatorStage) -> bool:
    """Report whether a release is deployed, and another one waits for a workload."""
    rows = site.observe().rows
    return any(row.state == "deployed" for row in rows) and any(
        "mariadb-server" in row.waiting_for for row in rows
    )


def test_a_loop_that_hangs_fails_liveness_alone(site: OperatorStage) -> None:
    """The reconciliation is overdue; it passes again once the loop goes on."""
    logged = len(site.log())
    pid = site.process().pid
    hangs = debugging.stopped_thread(pid, LOOP, lambda: ask(site, "/livez")[0] == 200)
    with hangs:
        began = time.monotonic()
        waiting.until(
            "/livez fails",
            lambda: ask(site, "/livez")[0] == FAILED,
            poll_s=0.5,
        )
        after_s = time.monotonic() - began
        answers = {path: ask(site, path) for path in ("/livez", "/healthz", "/readyz")}
    print(f"/livez failed after {after_s:.0f} s: {answers}")
    assert after_s > program.STALL_S - 5
    failed = "[-]osdpl failed: reason withheld"
    assert (answers["/livez"][0], failed in answers["/livez"][1]) == (FAILED, True)
    assert (answers["/healthz"][0], failed in answers["/healthz"][1]) == (FAILED, True)
    assert answers["/readyz"][0] == http.client.OK
    waiting.until("/livez passes again", lambda: ask(site, "/livez")[0] == 200)
    log = site.log()[logged:]
    assert "no turn for" in log
    assert "health check recovered" in log
    assert site.process().pid == pid


def test_readiness_waits_until_all_is_listed(site: OperatorStage) -> None:
    """An API server that does not answer is no reason for a restart."""
    site.stop()
    server = processes.find(site.where, API_SERVER)
    assert server is not None
    server.suspend()
    try:
        controller.launch(site.where, site.pex)
        waiting.until("/readyz fails", lambda: ask(site, "/readyz")[0] == FAILED)
        answers = {path: ask(site, path) for path in ("/livez", "/readyz")}
    finally:
        server.resume()
    print(answers)
    assert answers["/livez"] == (200, "ok")
    assert "[-]caches failed: reason withheld" in answers["/readyz"][1]
    waiting.until("it is ready", lambda: controller.is_ready(site.where))
