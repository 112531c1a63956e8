"""Settings of ini files and ConfigMap: each applied, or reported once as ignored."""

import os
import pathlib
import threading
from typing import Any

import pytest

from lib.kube import resources
from lib.osdpl.api import settings
from lib.osdpl.daemon import settings_files
from lib.osdpl.reconcile import actions
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import Cluster, Process

APPLIED = {
    ("osctl", "wait_application_ready_timeout"): "ready_timeout_s",
    ("osctl", "wait_application_ready_delay"): "ready_delay_s",
    ("helmbundle", "helm_cmd_timeout"): "helm_timeout_s",
}
SETTINGS = {
    "osctl": (
        *("wait_application_ready_timeout", "wait_application_ready_delay"),
        *("node_not_ready_flapping_timeout", "max_workers"),
        "octavia_lb_failover_job_timeout",
    ),
    "helmbundle": (
        *("manifest_enable_timeout", "manifest_enable_delay"),
        *("manifest_disable_timeout", "manifest_disable_delay"),
        *("manifest_purge_timeout", "manifest_purge_delay", "manifest_apply_delay"),
        *("helm_cmd_timeout", "helm_max_retries"),
    ),
    "maintenance": (
        *("instance_migrate_concurrency", "nwl_parallel_max_compute"),
        *("nwl_parallel_max_gateway", "respect_nova_az", "ndr_skip_instance_check"),
        *("ndr_skip_volume_check", "automated_openvswitch_restart"),
    ),
}
"""Settings of the reference. Source: Mirantis/rockoon, etc/rockoon."""
ROWS = [(section, key) for section, keys in SETTINGS.items() for key in keys]


def ini(section: str, key: str, value: str) -> dict[str, str]:
    return {"01.ini": f"[{section}]\n{key} = {value}\n"}


@pytest.mark.parametrize(("section", "key"), ROWS)
def test_each_setting_is_applied_or_reported(section: str, key: str) -> None:
    observed = settings.read(ini(section, key, "77"))
    if (section, key) in APPLIED:
        assert getattr(observed, APPLIED[section, key]) == 77
        assert observed.ignored == ()
        return
    (text,) = observed.ignored
    print(text)
    assert text.startswith(f"01.ini [{section}] {key}: no effect: ")
    assert observed == settings.OsdplSettings(ignored=observed.ignored)


def test_no_other_setting_is_known() -> None:
    assert set(settings.KNOWN) == set(ROWS)


BAD = {
    "unknown section": (
        "[nova]\na = 1",
        "[nova]: unknown section: must be one of helmbundle, maint",
    ),
    "unknown key": (
        "[osctl]\nwait = 1",
        "[osctl] wait: unknown key: must be one of wait_app",
    ),
    "no number": (
        "[osctl]\nwait_application_ready_timeout = soon",
        (
            '[osctl] wait_application_ready_timeout: invalid value "soon": must be'
            " a number of seconds, 1 or more"
        ),
    ),
    "a fraction": (
        "[osctl]\nwait_application_ready_delay = 1.5",
        (
            '[osctl] wait_application_ready_delay: invalid value "1.5": must be'
            " a number of seconds, 0 or more"
        ),
    ),
    "0": (
        "[helmbundle]\nhelm_cmd_timeout = 0",
        'helm_cmd_timeout: invalid value "0": must be a number of seconds, 1 or more',
    ),
    "negative": (
        "[helmbundle]\nhelm_cmd_timeout = -5",
        'helm_cmd_timeout: invalid value "-5": must be a number of seconds, 1 or more',
    ),
    "too long for helm": (
        "[helmbundle]\nhelm_cmd_timeout = 99999999999999",
        "must be a number of seconds, at most 604800",
    ),
    "no ini": ("wait = 1", "File contains no section headers"),
    "a key twice": ("[osctl]\nmax_workers=1\nmax_workers=2", "already exists"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_malformed_is_named_and_the_rest_counts(name: str) -> None:
    text, words = BAD[name]
    good = ini("osctl", "wait_application_ready_timeout", "77")
    observed = settings.read({"00.ini": text, **good})
    (problem,) = observed.ignored
    print(problem)
    assert problem.startswith("00.ini")
    assert words in problem
    assert observed.ready_timeout_s == 77


def test_later_files_override_earlier_ones(tmp_path: pathlib.Path) -> None:
    """As in the reference: by name, and conf.d after all others."""
    (tmp_path / "conf.d").mkdir()
    for number, name in enumerate(("02.ini", "01.ini", "conf.d/00.ini"), 1):
        key = "wait_application_ready_timeout"
        (tmp_path / name).write_text(ini("osctl", key, str(number))["01.ini"])
    folder = settings_files.IniFolder(tmp_path)
    assert list(folder.files()) == ["01.ini", "02.ini", "conf.d/00.ini"]
    assert settings.read(folder.files()).ready_timeout_s == 3
    (tmp_path / "conf.d/00.ini").unlink()
    assert folder.refresh()
    assert settings.read(folder.files()).ready_timeout_s == 1
    assert not folder.refresh()


def test_what_is_no_file_is_left_out(tmp_path: pathlib.Path) -> None:
    """Nobody waits for the other end of a pipe."""
    os.mkfifo(tmp_path / "pipe.ini")
    (tmp_path / "folder.ini").mkdir()
    (tmp_path / "file.ini").write_text("[osctl]")
    (tmp_path / "link.ini").symlink_to(tmp_path / "file.ini")
    files = settings_files.IniFolder(tmp_path).files()
    assert dict(files) == {"file.ini": "[osctl]", "link.ini": "[osctl]"}


def test_a_change_of_a_file_is_noticed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings_files, "POLL_S", 0.05)
    folder = settings_files.IniFolder(tmp_path)
    noticed, stop = threading.Event(), threading.Event()
    watch = threading.Thread(target=folder.watch, args=(noticed.set, stop))
    watch.start()
    (tmp_path / "a.ini").write_text("[osctl]\nmax_workers = 1\n")
    assert noticed.wait(60)
    stop.set()
    watch.join(60)
    assert settings_files.IniFolder(None).files() == {}


def config_map(cluster: Cluster, text: str, name: str = settings.CONFIG_MAP) -> None:
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": ground.NAMESPACE},
        "data": {"01-own.ini": text, "README": "[osctl]\nno = 1"},
    }
    cluster.api.put(resources.CONFIG_MAPS, document)


def test_the_config_map_is_read_again_without_a_restart(installed: Cluster) -> None:
    cluster = installed
    process = Process(cluster)
    process.settle()
    assert process.observer.settings().ready_timeout_s == 1200
    config_map(cluster, "[osctl]\nwait_application_ready_timeout = 77\n")
    process.settle()
    assert process.observer.settings().ready_timeout_s == 77
    assert cluster.condition("Accepted")["reason"] == "Accepted"
    cluster.api.remove(resources.CONFIG_MAPS, settings.CONFIG_MAP, ground.NAMESPACE)
    process.settle()
    assert process.observer.settings().ready_timeout_s == 1200


def test_what_is_ignored_is_one_event(installed: Cluster) -> None:
    cluster = installed
    config_map(cluster, "[osctl]\nmax_workers = 5\nwait = 1\n")
    process = Process(cluster)
    observed = []
    for _ in range(20):
        done, wait_s = process.step()
        cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)
        for action in done:
            if isinstance(action, actions.ApplyConditions):
                observed += [event for event in action.events if event[0] == "Warning"]
    ((_, reason, message),) = observed
    assert reason == "FieldsIgnored"
    assert "ConfigMap rockoon-config 01-own.ini [osctl] max_workers: no eff" in message
    assert "[osctl] wait: unknown key: must be one of" in message
    assert "README" not in message


def test_the_spec_overrides_the_times_of_nova_and_neutron() -> None:
    base = settings.read(ini("osctl", "wait_application_ready_delay", "5"))
    times = {"nova": {"timeout": 7}, "neutron": {"delay": 1}}
    spec = {"timeouts": {"application_readiness": times}}
    observed = settings.with_spec(base, spec)
    assert (observed.timeout_s("compute"), observed.delay_s("compute")) == (7, 5)
    assert (observed.timeout_s("networking"), observed.delay_s("networking")) == (
        1200,
        1,
    )
    assert (observed.timeout_s("identity"), observed.delay_s("identity")) == (1200, 5)
