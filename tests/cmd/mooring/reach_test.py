"""Which kubeconfig a command reads, and the error where there is none."""

import pathlib
import socket

import pytest

from lib.kube import errors
from mooring.commands import reach
from tests.harness.daemons import output_forms, unreachable

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: here}}]
clusters: [{name: here, cluster: {server: "https://SERVER:6443"}}]
users: [{name: here, user: {token: t}}]
"""


@pytest.fixture()
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a home folder; the environment describes no cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(path: pathlib.Path, server: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(KUBECONFIG.replace("SERVER", server))
    return str(path)


@pytest.mark.parametrize(
    ("sources", "server"),
    [
        (("option", "variable", "home", "pod"), "option"),
        (("variable", "home", "pod"), "variable"),
        (("home", "pod"), "home"),
        (("home",), "home"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else value,
)
def test_the_order_of_kubeconfigs_is_kubectls(
    sources: tuple[str, ...],
    server: str,
    home: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file of the user goes before the account of a pod."""
    option = write(home / "option", "option") if "option" in sources else ""
    if "variable" in sources:
        monkeypatch.setenv("KUBECONFIG", write(home / "variable", "variable"))
    if "home" in sources:
        write(home / ".kube/config", "home")
    if "pod" in sources:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "pod")
    assert reach.cluster(option, "").host == f"https://{server}:6443"


def test_without_a_kubeconfig_the_error_names_each_place(home: pathlib.Path) -> None:
    with pytest.raises(errors.KubeError) as caught:
        reach.cluster("", "")
    message = str(caught.value)
    for place in ("--kubeconfig", "$KUBECONFIG", str(home / ".kube/config"), "pod"):
        assert place in message


@pytest.mark.parametrize(
    ("form", "is_told"),
    [("terminal 80", True), ("pipe", False)],
    ids=["a terminal has a line for the server", "a pipe has none"],
)
def test_a_silent_server_is_named(
    tmp_path: pathlib.Path, form: str, is_told: bool
) -> None:
    """It accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        file = tmp_path / "kubeconfig"
        file.write_text(unreachable.KUBECONFIG.replace("http://127.0.0.1:1", url))
        (tmp_path / "cloud.conf").write_text(unreachable.CONF)
        words = ["doctor", "--kubeconfig", str(file), "--timeout", "3"]
        words += ["--cloud-config", "cloud.conf"]
        chosen = output_forms.FORMS[form]
        output = output_forms.run(words, chosen, {"HOME": str(tmp_path)})
    print(output.err)
    assert (f"waiting for {url} (3 s at most)" in output.err) is is_told
