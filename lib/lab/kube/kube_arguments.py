"""The arguments of the control plane's programs. Pure.

They differ from those of a production cluster where a lab gains by it: nothing leaves
the loopback address, etcd does not wait for the disk, nothing elects a leader or limits
a client, and a Node whose kubelet has gone is found out in seconds.
"""

import pathlib
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.kube import kube_files
from lib.lab.run import ports

CONTROLLERS = "*,bootstrap-signer-controller,token-cleaner-controller"
ENV: Mapping[str, str] = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}
"""Of Go's programs, which collect garbage less often.

A start of kube-apiserver takes 0.6 s of CPU less, for 110 MB.
"""
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_LOOP = ports.LOOPBACK


def etcd_client(where: places.Places) -> str:
    """Return the URL at which etcd serves the API server."""
    return f"http://{_LOOP}:{where.port('etcd')}"


def etcd(where: places.Places, program: pathlib.Path) -> Sequence[str]:
    """Return the command of etcd."""
    peer = f"http://{_LOOP}:{where.port('etcd-peer')}"
    client = etcd_client(where)
    return (
        str(program),
        "--name=lab",
        f"--data-dir={kube_files.etcd_data(where)}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        # It elects itself after these: 0.25 s instead of 1 s.
        "--heartbeat-interval=50",
        "--election-timeout=250",
    )


def apiserver(
    where: places.Places, program: pathlib.Path, more: Sequence[str] = ()
) -> Sequence[str]:
    """Return the command of kube-apiserver; `more` comes last, so it prevails."""
    return (
        str(program),
        f"--etcd-servers={etcd_client(where)}",
        f"--bind-address={_LOOP}",
        f"--secure-port={where.port('apiserver')}",
        f"--advertise-address={_LOOP}",
        # An Endpoints object may not hold a loopback address.
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={kube_files.SERVICE_CIDRS}",
        "--allow-privileged",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-bootstrap-token-auth",
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=4000",
        "--max-mutating-requests-inflight=2000",
        "--etcd-count-metric-poll-period=0",
        "--profiling=false",
        *_identity(kube_files.certificates(where)),
        *_audit(where),
        *more,
    )


def _identity(pki: pathlib.Path) -> Sequence[str]:
    """Whom the API server trusts, and how it shows itself."""
    return (
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
    )


def _audit(where: places.Places) -> Sequence[str]:
    """Two files of 100 MB at most: a lab may stay up for weeks."""
    return (
        f"--audit-policy-file={kube_files.audit_policy(where)}",
        f"--audit-log-path={where.log / 'audit.log'}",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=1",
    )


def allocating(pod_cidr: str) -> Sequence[str]:
    """Return more arguments for kube-controller-manager: it allocates podCIDRs."""
    return ("--allocate-node-cidrs=true", f"--cluster-cidr={pod_cidr}")


def controller_manager(
    where: places.Places, program: pathlib.Path, more: Sequence[str] = ()
) -> Sequence[str]:
    """Return the command of kube-controller-manager.

    With --cloud-provider=external it leaves Nodes, load balancers and routes of the
    cloud to a cloud controller manager. Pods of a lost Node are evicted after five
    minutes, as everywhere: that time is a toleration, not ours to set.
    """
    pki = kube_files.certificates(where)
    kubeconfig = kube_files.kubeconfig(where, "kube-controller-manager")
    return (
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={_LOOP}",
        f"--secure-port={where.port('kube-controller-manager')}",
        "--leader-elect=false",
        f"--controllers={CONTROLLERS}",
        "--cloud-provider=external",
        "--use-service-account-credentials",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/sa.key",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--service-cluster-ip-range={kube_files.SERVICE_CIDRS}",
        # A Node turns Unknown within 10 s after its last heartbeat, not within 55 s.
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=8s",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
        "--profiling=false",
        *more,
    )


def scheduler(where: places.Places, program: pathlib.Path) -> Sequence[str]:
    """Return the command of kube-scheduler."""
    kubeconfig = kube_files.kubeconfig(where, "kube-scheduler")
    return (
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={_LOOP}",
        f"--secure-port={where.port('kube-scheduler')}",
        "--leader-elect=false",
        "--profiling=false",
    )
