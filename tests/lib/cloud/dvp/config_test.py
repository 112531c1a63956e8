import base64
import pathlib
from collections.abc import Mapping

import pytest

from lib.cloud.dvp import config
from lib.process import config as process_config

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: parent, user: u}}]
clusters: [{name: parent, cluster: {server: "https://parent.example:6443/"}}]
users: [{name: u, user: {token: s3cret-token}}]
"""
UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"
ENV = {"DVP_NAMESPACE": "project-a", "CLUSTER_UUID": UUID}


def encoded(text: str) -> str:
    return base64.encodebytes(text.encode()).decode()


@pytest.mark.parametrize("text", [KUBECONFIG, encoded(KUBECONFIG)])
def test_the_environment_of_the_reference_is_read(text: str) -> None:
    """The kubeconfig counts decoded, as the reference has it, and in base64."""
    read = config.read("", {**ENV, "DVP_KUBERNETES_CONFIG_BASE64": text})
    assert read.namespace == "project-a"
    assert read.cluster_uuid == UUID
    assert read.connection.host == "https://parent.example:6443"
    assert read.connection.authorization == "Bearer s3cret-token"
    assert "s3cret" not in repr(read)


def test_a_file_precedes_the_environment_and_is_read_again(
    tmp_path: pathlib.Path,
) -> None:
    """A changed file makes the connection stale; its reload has the new token."""
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    read = config.read(str(path), {**ENV, "DVP_KUBERNETES_CONFIG_BASE64": "?"})
    assert not read.connection.is_stale(0)
    path.write_text(KUBECONFIG.replace("s3cret", "rotated"))
    assert read.connection.is_stale(0)
    assert read.connection.reload().authorization == "Bearer rotated-token"


WRONG: Mapping[str, tuple[Mapping[str, str], str]] = {
    "nothing": (
        ENV,
        "--parent-kubeconfig: not set: must be the path of the parent's kubeconfig,"
        " unless DVP_KUBERNETES_CONFIG_BASE64 is set",
    ),
    "not base64": (
        {**ENV, "DVP_KUBERNETES_CONFIG_BASE64": "s3cret&"},
        "DVP_KUBERNETES_CONFIG_BASE64: invalid value [redacted]: must be a kubeconfig"
        " in YAML, or one in base64",
    ),
    "base64 of another thing": (
        {**ENV, "DVP_KUBERNETES_CONFIG_BASE64": encoded("s3cret")},
        "DVP_KUBERNETES_CONFIG_BASE64: malformed: must be a mapping",
    ),
    "no YAML": (
        {**ENV, "DVP_KUBERNETES_CONFIG_BASE64": "a: b: s3cret"},
        "DVP_KUBERNETES_CONFIG_BASE64: not YAML (line 1)",
    ),
    "a field missing": (
        {**ENV, "DVP_KUBERNETES_CONFIG_BASE64": KUBECONFIG.replace("current-", "x-")},
        "DVP_KUBERNETES_CONFIG_BASE64: Invalid kube-config file. Expected key"
        " current-context in DVP_KUBERNETES_CONFIG_BASE64",
    ),
    "no namespace": (
        {"CLUSTER_UUID": "u", "DVP_KUBERNETES_CONFIG_BASE64": KUBECONFIG},
        "DVP_NAMESPACE: not set: must be the namespace of the project in the parent"
        " cluster",
    ),
    "a bad namespace": (
        {**ENV, "DVP_NAMESPACE": "A/b", "DVP_KUBERNETES_CONFIG_BASE64": KUBECONFIG},
        'DVP_NAMESPACE: invalid value "A/b": must be the namespace of the project in'
        " the parent cluster",
    ),
    "no cluster": (
        {"DVP_NAMESPACE": "a", "DVP_KUBERNETES_CONFIG_BASE64": KUBECONFIG},
        "CLUSTER_UUID: not set: must be the UUID of this cluster, value of the label"
        " dvp.deckhouse.io/cluster-uuid",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_problem_is_named_without_a_secret(case: str) -> None:
    """One message per problem, which names the variable and what is required."""
    env, expected = WRONG[case]
    with pytest.raises(process_config.ConfigError) as caught:
        config.read("", env)
    print(caught.value)
    (problem,) = caught.value.problems
    assert str(problem).startswith(expected)
    assert "s3cret" not in str(problem)


def test_all_problems_are_reported_together() -> None:
    """Nothing is set at all: one message for each of the three."""
    with pytest.raises(process_config.ConfigError) as caught:
        config.read("", {})
    assert len(caught.value.problems) == 3


def test_a_missing_file_is_named(tmp_path: pathlib.Path) -> None:
    """A path that leads nowhere is a problem of the flag."""
    path = tmp_path / "none"
    with pytest.raises(process_config.ConfigError, match="--parent-kubeconfig: .*none"):
        config.read(str(path), ENV)


FILES = {
    "": ": empty: must be a kubeconfig",
    "clusters: s3cret": ": clusters: malformed: expected",
}


@pytest.mark.parametrize("text", FILES)
def test_a_file_with_a_name_of_its_own_is_not_named_by_its_path(
    tmp_path: pathlib.Path, text: str
) -> None:
    """As of a Secret, whose file is in memory."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(process_config.ConfigError) as caught:
        config.read(str(path), ENV, field="Secret a/b")
    print(caught.value)
    assert str(caught.value).startswith(f"Secret a/b{FILES[text]}")
    assert "s3cret" not in str(caught.value)
