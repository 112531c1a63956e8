import json
import os
import pathlib
import subprocess
import sys
import threading
import typing
from collections.abc import Callable

import pytest

from lib.kube import errors, kube_config

if typing.TYPE_CHECKING:
    from tests.lib import conftest as shared

WriteKubeconfig = Callable[..., pathlib.Path]
URL = "https://127.0.0.1:1"


def test_a_token_becomes_the_header(kubeconfig: WriteKubeconfig) -> None:
    """The user's token is what we authenticate by, and the server is the cluster's."""
    loaded = kube_config.load(str(kubeconfig(URL + "/")), env={})
    assert (loaded.host, loaded.authorization) == (URL, "Bearer s3cret-token")


def test_a_token_file_is_trimmed_and_watched(
    kubeconfig: WriteKubeconfig, tmp_path: pathlib.Path
) -> None:
    """A token file counts without its last newline; a new token makes us stale."""
    (tmp_path / "token").write_text("one\n")
    loaded = kube_config.load(str(kubeconfig(URL, {"tokenFile": "token"})), env={})
    assert loaded.authorization == "Bearer one"
    assert not loaded.is_stale(0)
    (tmp_path / "token").write_text("other\n")
    assert loaded.is_stale(0)
    assert loaded.reload().authorization == "Bearer other"


def test_a_changed_kubeconfig_makes_us_stale(kubeconfig: WriteKubeconfig) -> None:
    """Another server in the file is another server for us, once reloaded."""
    loaded = kube_config.load(str(kubeconfig(URL)), env={})
    kubeconfig("https://127.0.0.1:22")
    assert loaded.is_stale(0)
    assert loaded.reload().host == "https://127.0.0.1:22"


def test_a_master_goes_before_the_kubeconfig(kubeconfig: WriteKubeconfig) -> None:
    """The master's URL replaces the cluster's server."""
    loaded = kube_config.load(str(kubeconfig(URL)), "https://other:6443/", env={})
    assert loaded.host == "https://other:6443"


def test_a_pod_uses_its_service_account(tmp_path: pathlib.Path) -> None:
    """Without a kubeconfig, the environment of a pod is enough."""
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_text("a certificate")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    loaded = kube_config.load(None, env=env, service_account=tmp_path)
    assert loaded.host == "https://[fd00::1]:443"
    assert loaded.authorization == "bearer pod-token"
    (tmp_path / "token").write_text("a longer token")
    assert loaded.is_stale(0)


def test_the_environment_names_a_kubeconfig(kubeconfig: WriteKubeconfig) -> None:
    """$KUBECONFIG is used when nothing else is there."""
    assert kube_config.load(None, env={"KUBECONFIG": str(kubeconfig(URL))}).host == URL


def broken(path: pathlib.Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(errors.KubeError) as caught:
        kube_config.load(str(path), env={})
    return str(caught.value)


def test_bad_files_are_named(tmp_path: pathlib.Path) -> None:
    """Each way to be wrong gives one error that names the file."""
    path = tmp_path / "kubeconfig"
    for text in ("", "[]", "a: [", "a: b", "clusters: 3", "contexts: [3]"):
        assert str(path) in broken(path, text), text


def test_a_missing_field_is_named(kubeconfig: WriteKubeconfig) -> None:
    """The message names the field."""
    path = kubeconfig(URL)
    text = path.read_text()
    assert "current-context" in broken(path, text.replace("current-", "ancient-"))
    assert "contexts" in broken(path, text.replace("name: here", "name: there"))


def test_a_missing_file_is_named(
    kubeconfig: WriteKubeconfig, tmp_path: pathlib.Path
) -> None:
    """A kubeconfig, or a file it refers to, that isn't there is named."""
    with pytest.raises(errors.KubeError, match="nowhere: no such file"):
        kube_config.load(str(tmp_path / "nowhere"), env={})
    path = kubeconfig(URL, None, {"certificate-authority": "gone.pem"})
    with pytest.raises(errors.KubeError, match=r"gone\.pem"):
        kube_config.load(str(path), env={})


def test_no_secret_is_in_an_error(
    kubeconfig: WriteKubeconfig, tmp_path: pathlib.Path
) -> None:
    """Broken YAML, base64 or tokens are reported without being quoted."""
    path = tmp_path / "kubeconfig"
    assert "s3cret" not in broken(path, 'users: [{token: "s3cret]')
    path = kubeconfig(URL, {"token": "s3cret\nInjected: yes"})
    assert "s3cret" not in broken(path, path.read_text())
    path = kubeconfig(URL, {"client-key-data": "s3cre"})
    message = broken(path, path.read_text())
    assert "client-key-data" in message
    assert "s3cre" not in message
    assert "s3cret" not in repr(kube_config.load(str(kubeconfig(URL)), env={}))


MALFORMED = {
    "a list": ("[]", "malformed: must be a mapping with clusters, users and contexts"),
    "clusters": ("{clusters: hidden}", "clusters: malformed: expected `array | null`"),
    "a server": (
        "clusters: [{name: a, cluster: {server: 1234}}]",
        "clusters[0].cluster.server: malformed: expected `str`, got `int`",
    ),
    "a token": (
        "users: [{name: a, user: {token: 1234}}]",
        "users[0].user.token: malformed: expected `str | null`, got `int`",
    ),
    "a context": (
        "contexts: [{name: a, context: hidden}]",
        "contexts[0].context: malformed: expected `object`, got `str`",
    ),
    "no context of that name": (
        "{current-context: a, contexts: [{name: b, context: {cluster: c}}]}",
        "Expected object with name a in",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_field_is_named_without_its_value(
    case: str, tmp_path: pathlib.Path
) -> None:
    """From a file and from a variable alike."""
    text, expected = MALFORMED[case]
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    reads: tuple[Callable[[], object], ...] = (
        lambda: kube_config.load(str(file), env={}),
        lambda: kube_config.load_text(text, "VARIABLE"),
    )
    for read in reads:
        with pytest.raises(errors.KubeError) as caught:
            read()
        print(caught.value)
        assert expected in str(caught.value)
        assert "hidden" not in str(caught.value)
        assert "1234" not in str(caught.value)


def test_nothing_to_read_is_an_error() -> None:
    """Outside a pod and without a kubeconfig there is no guessing."""
    with pytest.raises(errors.KubeError, match="outside of a pod"):
        kube_config.load(None, env={})


def test_a_server_must_be_a_url(kubeconfig: WriteKubeconfig) -> None:
    """A bare host is refused with its text, not left for the first request."""
    with pytest.raises(errors.KubeError, match=r"example\.org.*URL"):
        kube_config.load(str(kubeconfig("example.org")), env={})


def plug_in(tmp_path: pathlib.Path, text: str) -> dict[str, object]:
    script = tmp_path / "plug_in.py"
    script.write_text(text)
    version = "client.authentication.k8s.io/v1"
    command = {"command": sys.executable, "args": [str(script)], "apiVersion": version}
    return {"exec": command}


def test_an_exec_plug_in_gives_the_token(
    kubeconfig: WriteKubeconfig, tmp_path: pathlib.Path
) -> None:
    """Its token is used, and is renewed before its end."""
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "made", "expirationTimestamp": "2030-01-01T00:00:00Z"},
    }
    user = plug_in(tmp_path, f"print({json.dumps(answer)!r})")
    loaded = kube_config.load(str(kubeconfig(URL, user)), env=os.environ)
    assert loaded.authorization == "Bearer made"
    end = 1893456000
    assert not loaded.is_stale(end - 120)
    assert loaded.is_stale(end - 30)


def test_a_failing_exec_plug_in_is_an_error(
    kubeconfig: WriteKubeconfig, tmp_path: pathlib.Path
) -> None:
    """Going on without credentials would look like being forbidden everything."""
    user = plug_in(tmp_path, "raise SystemExit(3)")
    with pytest.raises(errors.KubeError, match="plug-in"):
        kube_config.load(str(kubeconfig(URL, user)), env=os.environ)


def test_an_exec_plug_in_that_does_not_answer_is_killed(
    tmp_path: pathlib.Path, eventually: "shared.Eventually"
) -> None:
    """Neither its process, nor one that it has started, nor our thread remains."""
    marker = tmp_path / "pids"
    script = f"sleep 100 & echo $$ $! > {marker}; wait"

    def call() -> None:
        subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True)

    def threads() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name == "exec-plug-in"]

    with pytest.raises(errors.Unavailable, match="did not answer within 1 s"):
        kube_config._bounded(call, 1.0)
    pids = marker.read_text().split()
    assert len(pids) == 2
    eventually(lambda: threads() == [])
    eventually(lambda: not any(is_running(pid) for pid in pids))


def is_running(pid: str) -> bool:
    """Report whether a process exists and is no zombie."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
