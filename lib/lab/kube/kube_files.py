"""The files of a lab's control plane: certificates, kubeconfigs, the audit policy.

Rules: what is there already is kept, so a lab that starts again knows its clients.
"""

import datetime
import importlib.resources
import pathlib

from lib.lab import places
from lib.lab.kube import pki
from lib.lab.run import ports

SERVICE_CIDRS = "10.96.0.0/16,fd00:96::/112"
_FIRST_SERVICE = "10.96.0.1"
"""Of the `kubernetes` Service: the first address of the first range."""

_SERVING = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    ports.LOOPBACK,
    _FIRST_SERVICE,
)
# By file name: the authority that signs it, and for whom.
# Source: Kubernetes documentation, "PKI certificates and requirements".
_CERTIFICATES = {
    "apiserver": ("ca", pki.Subject("kube-apiserver", names=_SERVING)),
    "apiserver-kubelet-client": (
        "ca",
        pki.Subject("kube-apiserver-kubelet-client", "system:masters"),
    ),
    "front-proxy-client": ("front-proxy-ca", pki.Subject("front-proxy-client")),
    "admin": ("ca", pki.Subject("admin", "system:masters")),
    "kube-controller-manager": ("ca", pki.Subject("system:kube-controller-manager")),
    "kube-scheduler": ("ca", pki.Subject("system:kube-scheduler")),
}
_KUBECONFIGS = ("admin", "kube-controller-manager", "kube-scheduler")


def room(where: places.Places) -> pathlib.Path:
    """Return the control plane's folder."""
    return where.state / "kube"


def certificates(where: places.Places) -> pathlib.Path:
    """Return the folder of certificates and keys."""
    return room(where) / "pki"


def etcd_data(where: places.Places) -> pathlib.Path:
    """Return the folder in which etcd keeps everything the API server knows."""
    return room(where) / "etcd"


def audit_policy(where: places.Places) -> pathlib.Path:
    """Return the audit policy's file."""
    return room(where) / "audit-policy.yaml"


def kubeconfig(where: places.Places, user: str) -> pathlib.Path:
    """Return the place of a user's kubeconfig."""
    return room(where) / f"{user}.kubeconfig"


def server(where: places.Places) -> str:
    """Return the URL of the API server."""
    return f"https://{ports.LOOPBACK}:{where.port('apiserver')}"


def make_folders(where: places.Places) -> None:
    """Make the control plane's folders, for their owner alone."""
    for folder in (where.state, where.log, room(where)):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in (certificates(where), etcd_data(where)):
        folder.mkdir(exist_ok=True, mode=0o700)
        # etcd refuses a folder that others may read.
        folder.chmod(0o700)


def write(where: places.Places, now: datetime.datetime) -> None:
    """Write what is missing; kubeconfigs always, since ports may have changed."""
    for name in ("ca", "front-proxy-ca"):
        if pki.kept(certificates(where), name) is None:
            pki.keep(certificates(where), name, pki.authority(f"lab {name}", now))
    for name, (authority, subject) in _CERTIFICATES.items():
        issued(where, name, subject, now, authority)
    _write_token_key(certificates(where))
    for user in _KUBECONFIGS:
        pair = pki.kept(certificates(where), user)
        write_kubeconfig(where, user, pki.Credentials(pair))
    policy = importlib.resources.files("lib.lab.kube") / "audit_policy.yaml"
    audit_policy(where).write_bytes(policy.read_bytes())


def issued(
    where: places.Places,
    name: str,
    subject: pki.Subject,
    now: datetime.datetime,
    authority: str = "ca",
) -> pki.Pair:
    """Return the certificate NAME; issue and keep it when there is none."""
    folder = certificates(where)
    pair = pki.kept(folder, name)
    if pair is None:
        signer = pki.kept(folder, authority)
        if signer is None:
            raise FileNotFoundError(folder / f"{authority}.crt")
        pair = pki.issue(signer, subject, now)
        pki.keep(folder, name, pair)
    return pair


def write_kubeconfig(
    where: places.Places, user: str, who: pki.Credentials
) -> pathlib.Path:
    """Write a user's kubeconfig; return its path."""
    authority = (certificates(where) / "ca.crt").read_bytes()
    text = pki.kubeconfig(server(where), authority, who)
    file = kubeconfig(where, user)
    pki.write_secret(file, text.encode())
    return file


def _write_token_key(folder: pathlib.Path) -> None:
    """Make the key that signs ServiceAccount tokens; its public half comes last."""
    if not (folder / "sa.pub").exists():
        private, public = pki.key_pair()
        pki.write_secret(folder / "sa.key", private)
        pki.write_secret(folder / "sa.pub", public)
