"""Reads of `mooring doctor` from a cluster."""

import datetime
from collections.abc import Collection

from lib.doctor import (
    chart,
    components,
    deployed,
    machine_api,
    pod_states,
    rights,
    runtime_extensions,
)
from lib.doctor.model import (
    CheckResult,
    DaemonAccount,
    LeaseHolder,
    NodeIdentity,
    PodReport,
    ReadFailure,
    Right,
)
from lib.kube import client, errors, listing, resources
from lib.kube import lease as kube_lease
from lib.kube import nodes as kube_nodes


class ClusterReader:
    """Reads of one API server as one user; timeout_s bounds every call."""

    def __init__(self, api: client.Api, timeout_s: float) -> None:
        self._api = api
        self._timeout_s = timeout_s

    def gaps(
        self, rights: tuple[Right, ...], account: DaemonAccount | None
    ) -> tuple[Right, ...]:
        """Return the rights that we, or an account, do not have.

        Raises:
            KubeError: the API server did not answer for one of them.
        """
        return tuple(right for right in rights if not self._has(right, account))

    def account_of(self, component: str) -> DaemonAccount | None:
        """Return the account of a component's Deployment; None unless there is one.

        Raises:
            KubeError: the Deployments cannot be listed.
        """
        return deployed.account(self._api, component, self._timeout_s)

    def has_account(self, account: DaemonAccount) -> bool:
        """Report whether a ServiceAccount exists.

        Raises:
            KubeError: it cannot be read.
        """
        try:
            self._api.read(
                resources.SERVICE_ACCOUNTS,
                account.name,
                account.namespace,
                timeout_s=self._timeout_s,
            )
        except errors.NotFound:
            return False
        return True

    def _has(self, right: Right, account: DaemonAccount | None) -> bool:
        kind = rights.kind_of_review(account)
        body = rights.review(right, account)
        answer = self._api.create(kind, body, timeout_s=self._timeout_s)
        return rights.is_allowed(answer)

    def lease(self, namespace: str, name: str) -> LeaseHolder | None:
        """Read a Lease; None when it does not exist.

        Raises:
            KubeError: it can't be read.
        """
        kind = resources.LEASES
        try:
            body = self._api.read(kind, name, namespace, timeout_s=self._timeout_s)
        except errors.NotFound:
            return None
        parsed = kube_lease.parse(body)
        record = parsed.record
        renewed_at = _time(record.renew_time)
        return LeaseHolder(
            record.holder_identity,
            renewed_at,
            record.lease_duration_seconds,
            parsed.work,
        )

    def nodes(self) -> tuple[NodeIdentity, ...]:
        """List all Nodes.

        Raises:
            KubeError: they can't be listed.
        """
        listed = listing.read(
            self._api, resources.NODES, kube_nodes.Node, timeout_s=self._timeout_s
        )
        return tuple(map(_node, listed.items))

    def machine_api(
        self, expected: machine_api.MachineProvider
    ) -> machine_api.MachineApi:
        """Return what `MachineApi` holds of a provider of Cluster API.

        Raises:
            KubeError: a part of it cannot be read.
        """
        api, timeout_s = self._api, self._timeout_s
        definitions = machine_api.definitions(api, expected, timeout_s)
        installed = components.read(api, (expected.component,), timeout_s)
        gaps: dict[str, tuple[Right, ...] | ReadFailure] = {}
        for component in installed:
            account = machine_api.account_of(component)
            rights_ = expected.rights_in(component.namespace)
            try:
                gaps[str(account)] = self.gaps(rights_, account)
            except errors.KubeError as error:
                gaps[str(account)] = ReadFailure(str(error))
        return machine_api.MachineApi(
            definitions,
            installed,
            gaps,
            runtime_extensions.read(api, timeout_s),
            runtime_extensions.held(api, expected.finalizers, timeout_s),
        )

    def chart(self, expected: chart.UmbrellaChart) -> tuple[CheckResult, ...]:
        """Check a release of an umbrella chart.

        Raises:
            KubeError: its workloads cannot be listed.
        """
        return chart.results(self._api, expected, self._timeout_s)

    def pods(self, names: Collection[str]) -> PodReport:
        """Return the Pods of components and their problems. names: of the components.

        Raises:
            KubeError: they can't be listed.
        """
        return pod_states.read(self._api, names, self._timeout_s)


def _node(node: kube_nodes.Node) -> NodeIdentity:
    is_new = node.has_taint(kube_nodes.UNINITIALIZED_TAINT)
    return NodeIdentity(node.metadata.name, node.spec.provider_id, is_new)


def _time(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
