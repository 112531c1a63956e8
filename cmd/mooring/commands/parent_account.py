"""Accounts of a child's components in the parent: permissions and kubeconfig.

Slow imports are inside the functions, so that `--help` is fast.
"""

import dataclasses
import json
import pathlib
import re
from typing import TYPE_CHECKING

import click

from mooring.commands import rendered

if TYPE_CHECKING:
    from lib.kube import kube_config

COMPONENTS = ("dvp-ccm", "csi-controller", "cloud-data-discoverer", "capdvp")
"""Those of lib/discovery/dvp/parent_rbac.py, which is imported when it is used."""
HOURS = 365 * 24
"""Hours until a token expires; the API server may shorten it."""
HOURS_MAX = 10 * HOURS
CALL_TIMEOUT_S = 30.0
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclasses.dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts that the options describe.

    namespace: the project. components: empty: all. account: the one account of all of
    them; empty: each has its own.
    """

    namespace: str
    components: tuple[str, ...]
    account: str

    def permissions(self) -> rendered.Documents:
        """Return accounts, Roles and bindings.

        Raises:
            ConfigError: no project is named, or a name is malformed.
        """

        from lib.discovery.dvp import parent_rbac

        self._require()
        components = self.components or COMPONENTS
        return parent_rbac.manifests(self.namespace, components, self.account)

    def only(self) -> str:
        """Return the name of the one account.

        Raises:
            ConfigError: as `permissions`; or the options describe several accounts.
        """
        from lib.discovery.dvp import parent_rbac
        from lib.process import config

        self._require()
        if self.account:
            return self.account
        if len(self.components) != 1:
            expected = "one component, or --account: a kubeconfig is of one account"
            raise config.ConfigError([config.not_set("--component", expected)])
        return parent_rbac.account_of(self.components[0])

    def _require(self) -> None:
        from lib.process import config

        problems = []
        if not _DNS_LABEL.fullmatch(self.namespace):
            expected = "the namespace of the project in the parent"
            problems.append(config.required("--namespace", self.namespace, expected))
        if self.account and not _DNS_LABEL.fullmatch(self.account):
            expected = "a DNS label, such as north"
            problems.append(config.FieldProblem("--account", self.account, expected))
        config.require(problems)


def print_kubeconfig(
    address: "kube_config.Configuration", namespace: str, account: str, hours: int
) -> None:
    """Request a token of an account from the parent, and print its kubeconfig.

    Raises:
        KubeError: the parent refuses it, or can't be reached.

    Source: Kubernetes authentication.k8s.io/v1, TokenRequest.
    """
    from lib.discovery import yaml_text
    from lib.discovery.dvp import parent_rbac
    from lib.kube import client, resources

    api = client.KubeClient(address, user_agent="mooring render dvp", pool_size=1)
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": hours * 3600},
    }
    answer = api.request(
        "POST",
        resources.SERVICE_ACCOUNTS.path(namespace, account, "token"),
        body=json.dumps(body).encode(),
        timeout_s=CALL_TIMEOUT_S,
    )
    status = json.loads(answer)["status"]
    document = parent_rbac.kubeconfig(
        api.host, _authority(address), (namespace, account), status["token"]
    )
    click.echo(yaml_text.dump(document), nl=False)
    click.echo(_ROTATION.format(account=account, until=_until(status)), err=True)


_ROTATION = """\
The token of {account} expires at {until}. Before that, run this command again and
replace the Secret of the child:
  kubectl -n NAMESPACE create secret generic SECRET --dry-run=client -o yaml \\
    --from-file=kubernetesConfigBase64=FILE --from-literal=namespace=PROJECT \\
    --from-literal=clusterUUID=UUID | kubectl apply -f -
Components that read the kubeconfig from a mounted file use the new one within a minute;
restart those that have it in their environment. Delete the ServiceAccount to revoke all
of its tokens."""


def _until(status: dict[str, str]) -> str:
    """Return the time of expiry that the API server chose."""
    return status["expirationTimestamp"]


def _authority(address: "kube_config.Configuration") -> str:
    """Return the certificates of the parent's authority in PEM; empty: a public one."""
    path = address.native.ssl_ca_cert
    return pathlib.Path(path).read_text() if path else ""
