"""How the parent is reached, wrongly: each program that uses it ends with code 2.

Prints program, case and message. Each message names flag or variable, and what would
be valid; it has no secret.
"""

import base64
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence

import pytest

from cloud_data_discoverer import main as cloud_data_discoverer
from csi_controller import main as csi_controller
from dvp_ccm import main as dvp_ccm

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: parent, user: u}}]
clusters: [{name: parent, cluster: {server: "https://parent.example:6443/"}}]
users: [{name: u, user: {token: s3cret-token}}]
"""
PROGRAMS: Mapping[str, tuple[Callable[[], None], Sequence[str]]] = {
    "dvp-ccm": (dvp_ccm.main, ("--cloud-provider=dvp",)),
    "csi-controller": (csi_controller.main, ("--cloud=dvp", "--endpoint=unix://x")),
    "cloud-data-discoverer": (cloud_data_discoverer.main, ("--cloud=dvp",)),
}
IN_ENV, IN_FILE = "DVP_KUBERNETES_CONFIG_BASE64", "--parent-kubeconfig"
ENV = {"DVP_NAMESPACE": "project-a", "CLUSTER_UUID": "uuid-a", IN_ENV: KUBECONFIG}
CASES: Mapping[str, tuple[Mapping[str, str], str | None, str]] = {
    "kubeconfig missing": (
        {IN_ENV: ""},
        None,
        f"{IN_FILE}: not set: must be the path of the parent's kubeconfig, unless"
        f" {IN_ENV} is set",
    ),
    "kubeconfig malformed, variable": (
        {IN_ENV: "a: b: s3cret"},
        None,
        f"{IN_ENV}: not YAML (line 1)",
    ),
    "kubeconfig malformed, file": (
        {},
        "a: b: s3cret",
        "not YAML (line 1)",
    ),
    "kubeconfig without a field": (
        {},
        KUBECONFIG.replace("current-", "x-"),
        "Expected key current-context",
    ),
    "kubeconfig not base64": (
        {IN_ENV: "s3cret&"},
        None,
        f"{IN_ENV}: invalid value [redacted]: must be a kubeconfig in YAML, or one in"
        " base64",
    ),
    "base64 of another thing": (
        {IN_ENV: base64.b64encode(b"s3cret").decode()},
        None,
        f"{IN_ENV}: malformed: must be a mapping with clusters",
    ),
    "namespace missing": (
        {"DVP_NAMESPACE": ""},
        None,
        "DVP_NAMESPACE: not set: must be the namespace of the project in the parent"
        " cluster",
    ),
    "namespace malformed": (
        {"DVP_NAMESPACE": "A/b"},
        None,
        'DVP_NAMESPACE: invalid value "A/b": must be the namespace of the project',
    ),
    "cluster missing": (
        {"CLUSTER_UUID": ""},
        None,
        "CLUSTER_UUID: not set: must be the UUID of this cluster",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("case", CASES)
def test_a_start_ends_with_one_message(
    program: str,
    case: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The kubeconfig of the cluster itself is missing, so that none starts at all."""
    changed, text, expected = CASES[case]
    for name, value in {**ENV, **changed}.items():
        monkeypatch.setenv(name, value)
    main, words = PROGRAMS[program]
    words = (*words, f"--kubeconfig={tmp_path / 'none'}")
    if text is not None:
        path = tmp_path / "parent.kubeconfig"
        path.write_text(text)
        words = (*words, f"{IN_FILE}={path}")
    monkeypatch.setattr(sys, "argv", [program, *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    lines = [line for line in shown.splitlines() if expected in line]
    print(f"{program:22} {case:32} {lines}")
    assert len(lines) == 1, shown
    assert lines[0].startswith(f"{program}: ")
    assert "s3cret" not in shown
    assert "Traceback" not in shown


def test_a_switch_without_a_namespace_is_named(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    words = ("--cloud-provider=dvp", f"--kubeconfig={tmp_path / 'none'}")
    monkeypatch.setattr(sys, "argv", ["dvp-ccm", *words, "--disabling-config-map=x"])
    with pytest.raises(SystemExit) as ended:
        dvp_ccm.main()
    assert ended.value.code == 2
    expected = '--disabling-config-map: invalid value "x": must be NAMESPACE/NAME'
    assert expected in capsys.readouterr().err
