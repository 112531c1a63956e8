"""How the parent is reached: flag, environment, and what is wrong with them.

A kubeconfig in a file is read again when it changes, by lib/kube/client.py: a rotated
token or certificate needs no restart. That of the environment is as the process got it.

Source: deckhouse modules/030-cloud-provider-dvp, environment of its components.
"""

import base64
import binascii
import dataclasses
import re
from collections.abc import Mapping

from lib.cloud.dvp import ownership
from lib.kube import errors, kube_config
from lib.process import config, flags, kinds

PARENT_KUBECONFIG = flags.Flag(
    "parent-kubeconfig",
    kinds.TEXT,
    "",
    "Path of the kubeconfig of the parent cluster; by default"
    " $DVP_KUBERNETES_CONFIG_BASE64 is one. It is read again when it changes.",
)
FLAG = f"--{PARENT_KUBECONFIG.name}"
KUBECONFIG = "DVP_KUBERNETES_CONFIG_BASE64"
NAMESPACE = "DVP_NAMESPACE"
CLUSTER_UUID = "CLUSTER_UUID"

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True, slots=True)
class ParentConfig:
    """The project in the parent, and how its API server is reached.

    namespace: the project. cluster_uuid: value of the ownership label.
    """

    namespace: str
    cluster_uuid: str
    connection: kube_config.Configuration


def read(path: str, env: Mapping[str, str], *, field: str = FLAG) -> ParentConfig:
    """Read the configuration. path: of the kubeconfig; empty: from the environment.

    field: what errors call the path.

    Raises:
        ConfigError: with every problem.
    """
    problems: list[config.FieldProblem] = []
    namespace = env.get(NAMESPACE, "").strip()
    if not _DNS_LABEL.fullmatch(namespace):
        expected = "the namespace of the project in the parent cluster"
        problems.append(config.required(NAMESPACE, namespace, expected))
    cluster_uuid = env.get(CLUSTER_UUID, "").strip()
    if not _LABEL_VALUE.fullmatch(cluster_uuid):
        expected = f"the UUID of this cluster, value of the label {ownership.CLUSTER}"
        problems.append(config.required(CLUSTER_UUID, cluster_uuid, expected))
    connection = _connection(path, env, field, problems)
    if connection is None or problems:
        raise config.ConfigError(problems)
    return ParentConfig(namespace, cluster_uuid, connection)


def is_in_environment(env: Mapping[str, str]) -> bool:
    """Report whether the environment has a kubeconfig, so that no file is needed."""
    return bool(env.get(KUBECONFIG))


def _connection(
    path: str,
    env: Mapping[str, str],
    field: str,
    problems: list[config.FieldProblem],
) -> kube_config.Configuration | None:
    text = env.get(KUBECONFIG, "").strip()
    if not path and not text:
        expected = f"the path of the parent's kubeconfig, unless {KUBECONFIG} is set"
        problems.append(config.not_set(field, expected))
        return None
    name = field if path else KUBECONFIG
    try:
        if path:
            return kube_config.load(path, env={})
        return kube_config.load_text(_decoded(text), KUBECONFIG)
    except errors.KubeError as error:
        # Messages of the reader begin with the name of what it read.
        problem = error.message.removeprefix(f"{KUBECONFIG}: ")
        if path and field != FLAG:
            problem = problem.removeprefix(f"{path}: ")
        if path and problem.endswith(f"{path} file is empty"):
            problem = "empty: must be a kubeconfig"
        problems.append(config.stated(name, problem))
    except ValueError:
        expected = "a kubeconfig in YAML, or one in base64"
        problems.append(config.FieldProblem(KUBECONFIG, text, expected, is_secret=True))
    return None


def _decoded(text: str) -> str:
    """Return the kubeconfig: the text, or what it is the base64 of.

    Pods of the reference get it decoded in spite of the variable's name. YAML has a
    colon, base64 has none.

    Raises:
        ValueError: it is neither.
    """
    if ":" in text:
        return text
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("neither YAML nor base64") from error
