"""The configuration of the cloud that a running Deployment reads, from its Secret.

Rules: two reads at most; the values of the Secret are never part of a message.
"""

import base64
import binascii
import dataclasses
import itertools
import pathlib
from collections.abc import Collection, Mapping, Sequence

import msgspec

from lib.doctor import components, pods
from lib.doctor.model import DaemonAccount
from lib.kube import client, container_variables, errors, listing, objects, resources
from lib.process import config, decoding

FLAG, SECRET_FLAG = "--cloud-config", "--cloud-config-secret"  # a flag
FLAGS = (FLAG, "--parent-kubeconfig")
"""Flags of components with the path of their configuration."""


class _DeploymentSpec(msgspec.Struct, frozen=True):
    template: pods.PodTemplate = pods.PodTemplate()


class _Deployment(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _DeploymentSpec = _DeploymentSpec()


class _Secret(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    data: Mapping[str, str] = msgspec.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Secret. key: empty: the only key, or the first usual one.

    folder: where the Deployment mounts the Secret; empty: not known. paths: path below
    it by key, for keys that have another path. variables: of the container: a value, or
    a key of a Secret.
    """

    namespace: str
    name: str
    key: str = ""
    folder: str = ""
    paths: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variables: Sequence[container_variables.ContainerVariable] = dataclasses.field(
        default=(), repr=False
    )

    def __str__(self) -> str:
        key = f", key {self.key}" if self.key else ""
        return f"Secret {self.namespace}/{self.name}{key}"


@dataclasses.dataclass(frozen=True, slots=True)
class CloudFiles:
    """A configuration and the files that it may name. title: for messages.

    files: content by the path at which the Deployment has it. keys: content of all
    keys of the Secret. variables: of the container, with values of this Secret.
    """

    title: str
    content: bytes = dataclasses.field(repr=False)
    files: Mapping[str, bytes] = dataclasses.field(repr=False)
    keys: Mapping[str, bytes] = dataclasses.field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Deployed:
    """A Deployment of a component. name: with its namespace.

    secret: of its configuration; an error where the command line names none. words:
    command lines of its containers.
    """

    component: str
    name: str
    secret: SecretKey | config.ConfigError
    words: tuple[str, ...] = ()


def parse(text: str) -> SecretKey:
    """Return the key that `NAMESPACE/NAME[/KEY]` names.

    Raises:
        ConfigError: the text has another form.
    """
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        expected = "NAMESPACE/NAME or NAMESPACE/NAME/KEY"
        # The value is the name of a Secret, not a secret.
        problem = config.stated(SECRET_FLAG, config.rejected(text, expected))
        raise config.ConfigError([problem])
    namespace, name, key = (*parts, "")[:3]
    return SecretKey(namespace, name, key)


def read(
    api: client.Api, where: SecretKey, usual_keys: Sequence[str], timeout_s: float
) -> CloudFiles:
    """Read a configuration from a Secret: one call. timeout_s: of the call.

    usual_keys: chosen in this order when `where` names no key.

    Raises:
        ConfigError: Secret or key are missing, or the value is malformed.
        KubeError: the Secret cannot be read.
    """
    body = _secret(api, where, timeout_s)
    values = {key: _value(where, key, text) for key, text in body.data.items()}
    key = _key(where, values, usual_keys)
    folder = pathlib.PurePosixPath(where.folder)
    files = {
        str(folder / where.paths.get(other, other)): value
        for other, value in values.items()
        if where.folder
    }
    title = str(dataclasses.replace(where, key=key))
    variables = {
        variable.name: text
        for variable in where.variables
        if (text := _text(where, variable, values)) is not None
    }
    return CloudFiles(title, values[key], files, values, variables)


def _text(
    where: SecretKey,
    variable: container_variables.ContainerVariable,
    values: Mapping[str, bytes],
) -> str | None:
    """Return the value of a variable; None: it is not known."""
    source = variable.value_from
    if source is None:
        return variable.value
    chosen = source.secret_key_ref
    if chosen is None or chosen.name != where.name or chosen.key not in values:
        return None
    return values[chosen.key].decode(errors="replace")


def _secret(api: client.Api, where: SecretKey, timeout_s: float) -> _Secret:
    kind = resources.SECRETS
    try:
        body = api.read(kind, where.name, where.namespace, timeout_s=timeout_s)
    except errors.NotFound:
        raise _problem(f"{where}: not found") from None
    except errors.Forbidden as error:
        raise _problem(
            f"{where}: permission denied: must be readable by the kubeconfig's user"
            f" (get secrets in namespace {where.namespace}); or set {FLAG}"
        ) from error
    return decoding.decode(body, _Secret)


def _value(where: SecretKey, key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        # The value is not part of the message, nor is the error that quotes it.
        problem = f"{dataclasses.replace(where, key=key)}: not base64"
    raise _problem(problem)


def _key(
    where: SecretKey, values: Mapping[str, bytes], usual_keys: Sequence[str]
) -> str:
    usual = [key for key in usual_keys if key in values]
    candidates = [where.key] if where.key else [*values] if len(values) == 1 else usual
    if candidates and candidates[0] in values:
        return candidates[0]
    keys = ", ".join(sorted(values)) or "none"
    required = where.key or " or ".join(usual_keys)
    bare = dataclasses.replace(where, key="")
    raise _problem(f"{bare}: key {required} not found: the Secret has {keys}")


def arguments(api: client.Api, component: str, timeout_s: float) -> Mapping[str, str]:
    """Return the flags of a component's Deployment, by name with hyphens: one call.

    Variables of the container are inserted. Empty: there is not exactly one Deployment
    of the component, or the Deployments may not be listed.

    Raises:
        KubeError: the Deployments cannot be listed.

    Source: Kubernetes core/v1 Container, "$(VAR_NAME)" in args.
    """
    try:
        deployments = _list(api, component, timeout_s)
    except errors.Forbidden:
        return {}
    result: dict[str, str] = {}
    for container in (
        deployments[0].spec.template.spec.containers if len(deployments) == 1 else ()
    ):
        words = (*container.command, *container.args)
        for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
            flag, is_joined, value = word.partition("=")
            if flag.startswith("--"):
                text = value if is_joined else following
                result.setdefault(flag, _inserted(text, container))
    return result


def account(api: client.Api, component: str, timeout_s: float) -> DaemonAccount | None:
    """Return the ServiceAccount of a component's Deployment: one call.

    None: there is not exactly one Deployment.

    Raises:
        KubeError: the Deployments cannot be listed.
    """
    deployments = _list(api, component, timeout_s)
    if len(deployments) != 1:
        return None
    name = deployments[0].spec.template.spec.service_account_name or "default"
    return DaemonAccount(deployments[0].metadata.namespace, name)


def _inserted(text: str, container: pods.Container) -> str:
    for variable in container.env:
        text = text.replace(f"$({variable.name})", variable.value)
    return text


def _list(api: client.Api, component: str, timeout_s: float) -> Sequence[_Deployment]:
    """List the Deployments of a component. component: value of the label."""
    listed = listing.read(
        api,
        resources.DEPLOYMENTS,
        _Deployment,
        timeout_s=timeout_s,
        selectors={"labelSelector": f"{components.LABEL}={component}"},
    )
    return tuple(listed.items)


def find(
    api: client.Api, component: str, timeout_s: float, variables: Collection[str] = ()
) -> SecretKey:
    """Return the Secret that the Deployment of a component reads: one call.

    component: value of the label of the chart's Deployment. variables: those of the
    configuration, where no flag names its file: values are keys of the Secret.

    Raises:
        ConfigError: there is no such Deployment, or several; neither its --cloud-config
            nor a variable is of a Secret.
        KubeError: the Deployments cannot be listed.
    """
    label = f"{components.LABEL}={component}"
    try:
        deployments = _list(api, component, timeout_s)
    except errors.Forbidden as error:
        raise _problem(
            "permission denied: must be allowed to list deployments.apps in all"
            f" namespaces; or set {FLAG} or {SECRET_FLAG}"
        ) from error
    if not deployments:
        raise _problem(
            f"not set, and no Deployment has the label {label}: must be the path of a"
            f" file, or {SECRET_FLAG} NAMESPACE/NAME[/KEY]"
        )
    if len(deployments) > 1:
        names = ", ".join(sorted(item.metadata.key for item in deployments))
        raise _problem(
            f"not set, and several Deployments have the label {label} ({names}): must"
            f" be the path of a file, or {SECRET_FLAG} NAMESPACE/NAME[/KEY]"
        )
    return _mounted(deployments[0], variables)


def every(
    api: client.Api, names: Mapping[str, str], timeout_s: float
) -> tuple[Deployed, ...]:
    """Return the Deployments of components: one call.

    names: component by the value of the label.

    Raises:
        KubeError: the Deployments cannot be listed.
    """
    listed = listing.read(
        api,
        resources.DEPLOYMENTS,
        _Deployment,
        timeout_s=timeout_s,
        selectors={"labelSelector": components.LABEL},
    )
    return tuple(
        Deployed(names[app], item.metadata.key, _attempted(item), _words(item))
        for item in listed.items
        if (app := item.metadata.labels.get(components.LABEL, "")) in names
    )


def _words(deployment: _Deployment) -> tuple[str, ...]:
    containers = deployment.spec.template.spec.containers
    return tuple(
        word
        for container in containers
        for word in (*container.command, *container.args)
    )


def _attempted(deployment: _Deployment) -> SecretKey | config.ConfigError:
    try:
        return _mounted(deployment)
    except config.ConfigError as error:
        return error


def _mounted(deployment: _Deployment, variables: Collection[str] = ()) -> SecretKey:
    """Return the key that the file of one of FLAGS is, or the Secret of variables."""
    pod = deployment.spec.template.spec
    title = f"Deployment {deployment.metadata.key}"
    for container in pod.containers:
        files = _flag_values((*container.command, *container.args))
        if len(files) > 1:
            raise _problem(
                f"{title}: several {FLAG}: must be one; or set {SECRET_FLAG}"
            )
        if files:
            where = _of_file(deployment, container, pathlib.PurePosixPath(files[0]))
            if where is None:
                raise _problem(
                    f"{title}: {FLAG}={files[0]}: must be in a volume of type secret;"
                    f" or set {FLAG} or {SECRET_FLAG}"
                )
            return where
    for container in pod.containers:
        if where := _of_variables(deployment, container, variables):
            return where
    names = ", ".join((FLAG, *variables))
    raise _problem(f"{title}: no container has {names}; set {FLAG} or {SECRET_FLAG}")


def _of_variables(
    deployment: _Deployment, container: pods.Container, names: Collection[str]
) -> SecretKey | None:
    """Return the Secret of variables, or of the files at the paths in NAME_FILE."""
    for variable in container.env:
        source = variable.value_from
        if variable.name in names and source is not None and source.secret_key_ref:
            secret, namespace = source.secret_key_ref, deployment.metadata.namespace
            return SecretKey(namespace, secret.name, variables=container.env)
        if variable.name.removesuffix("_FILE") in names and variable.value:
            path = pathlib.PurePosixPath(variable.value)
            where = _of_file(deployment, container, path)
            if where is not None:
                return dataclasses.replace(where, key="")
    return None


def _flag_values(words: Sequence[str]) -> list[str]:
    joined = [word.partition("=")[2] for word in words if word.startswith(_JOINED)]
    separate = [value for word, value in itertools.pairwise(words) if word in FLAGS]
    return joined + separate


_JOINED = tuple(f"{flag}=" for flag in FLAGS)


def _of_file(
    deployment: _Deployment, container: pods.Container, file: pathlib.PurePosixPath
) -> SecretKey | None:
    """Return the key that a path in a container is; None: no file of a Secret."""
    volumes = {volume.name: volume for volume in deployment.spec.template.spec.volumes}
    # The longest path is the innermost mount.
    mounts = sorted(container.volume_mounts, key=lambda mount: len(mount.mount_path))
    for mount in reversed(mounts):
        if not file.is_relative_to(mount.mount_path):
            continue
        volume = volumes.get(mount.name)
        if volume is None or volume.secret is None:
            return None
        below = str(file.relative_to(mount.mount_path))
        path = mount.sub_path if below == "." else below
        paths = {item.key: item.path for item in volume.secret.items}
        keys = [key for key, other in paths.items() if other == path] or [path]
        folder = "" if mount.sub_path else mount.mount_path
        namespace, name = deployment.metadata.namespace, volume.secret.secret_name
        return SecretKey(namespace, name, keys[0], folder, paths, container.env)
    return None


def _problem(text: str) -> config.ConfigError:
    return config.ConfigError([config.stated(FLAG, text)])
