"""Every way to authenticate that cloud.conf knows, on the real Keystone.

Each form logs in, lists the servers of its project, and sees one of them.
"""

import contextlib
import dataclasses
import datetime
import pathlib
import socket
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping

import openstack.connection
import pytest
import yaml

from lib.cloud.model import Instance, InstanceRef, Observation, Seen, Unknown
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.instances import cloud as openstack_cloud
from lib.lab import places
from lib.lab.grounds import servers
from lib.lab.kube import pki
from lib.lab.openstack import accounts, cloud, layout, tenant

FORMS = (
    "password: user and project by name, one domain for both",
    "password: user and project by name, a domain each",
    "password: user and project by id",
    "application credential by id",
    "application credential by name, user by id",
    "application credential by name, user by name",
    "trust: trustee-id and trustee-password",
    "token",
    "use-clouds: all from clouds.yaml",
    "use-clouds: password from secure.yaml, cloud.conf wins",
    "region that is not there",
    "os-endpoint-type internal",
    "os-endpoint-type adminURL",
    "ca-file",
    "ca-file of another authority",
    "cert-file and key-file",
    "client certificate missing",
    "tls-insecure",
    "wrong password",
)
"""Source: docs of cloud-provider-openstack, [Global]."""

SEEN = "seen"
Conf = Mapping[str, str]
MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


@dataclasses.dataclass(frozen=True)
class Ids:
    """What exists in Keystone for these tests."""

    base: Conf
    user: str
    user_name: str
    project: str
    project_name: str
    server: str


class Table:
    """One row per form; complete, or the test fails."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def show(self) -> None:
        for form in FORMS:
            print(f"{form:55} {self.rows.get(form, 'no row')}")


@pytest.fixture(scope="module")
def mine(project: MakeProject) -> tuple[accounts.Account, tenant.Tenant]:
    return project("auth")


@pytest.fixture(scope="module")
def connection(
    where: places.Places, mine: tuple[accounts.Account, tenant.Tenant]
) -> Iterator[openstack.connection.Connection]:
    """Be the project's own user."""
    with contextlib.closing(cloud.connect(where, mine[0])) as opened:
        yield opened


@pytest.fixture(scope="module")
def ids(
    where: places.Places,
    mine: tuple[accounts.Account, tenant.Tenant],
    connection: openstack.connection.Connection,
) -> Ids:
    server = mine[1].boot_another("auth-server")
    mine[1].wait({server.id}, servers.ACTIVE)
    return Ids(
        {"auth-url": layout.of(where).url(layout.KEYSTONE, "/v3")},
        str(connection.current_user_id),
        mine[0].user,
        str(connection.current_project_id),
        mine[0].project,
        server.id,
    )


def look(conf: Conf, server: str, env: Conf | None = None) -> Observation[Instance]:
    """Observe the server as openstack-ccm with that [Global] would."""
    lines = [f'{key} = "{value}"' for key, value in conf.items()]
    read = openstack_config.read("\n".join(["[Global]", *lines, ""]), env or {})
    api = openstack_cloud.open_client(read)
    guard = openstack_cloud.guard_of(api, read)
    instances = openstack_cloud.of_client(api, read, guard).instances
    assert instances is not None
    ref = InstanceRef("", f"openstack:///{server}")
    return instances.observe([ref], 0.0)[ref]


def told(observation: Observation[Instance]) -> str:
    if isinstance(observation, Seen):
        return SEEN
    assert isinstance(observation, Unknown)
    return f"{observation.error.reason}: {observation.error}"


# What tls-insecure is for: the user has asked for it.
@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_every_form_on_the_real_keystone(
    where: places.Places,
    ids: Ids,
    connection: openstack.connection.Connection,
    tmp_path: pathlib.Path,
) -> None:
    """A form without a row fails, as does one that should see and does not."""
    table = Table()

    def add(form: str, conf: Conf, env: Conf | None = None) -> None:
        table.rows[form] = told(look({**ids.base, **conf}, ids.server, env))

    try:
        passwords(add, ids)
        application_credentials(add, ids, connection)
        trust(add, ids, where, connection)
        add("token", {"token": str(connection.auth_token), "tenant-id": ids.project})
        clouds_files(add, ids, tmp_path)
        places_of_the_catalogue(add, ids)
        tls(add, ids, where, tmp_path)
    finally:
        table.show()
    assert set(table.rows) == set(FORMS)
    refused = {form: row for form, row in table.rows.items() if row != SEEN}
    assert {form: row.partition(":")[0] for form, row in refused.items()} == {
        "region that is not there": "CloudUnavailable",
        "ca-file of another authority": "CloudUnavailable",
        "client certificate missing": "CloudUnavailable",
        "wrong password": "CredentialsRejected",
    }
    assert "in region Elsewhere" in refused["region that is not there"]
    assert "certificate is not accepted" in refused["ca-file of another authority"]
    assert layout.PASSWORD not in refused["wrong password"].split()


Add = Callable[..., None]


def by_name(ids: Ids) -> Conf:
    return {
        "username": ids.user_name,
        "tenant-name": ids.project_name,
        "domain-id": "default",
        "password": layout.PASSWORD,
    }


def passwords(add: Add, ids: Ids) -> None:
    add("password: user and project by name, one domain for both", by_name(ids))
    domains = {"user-domain-name": "Default", "tenant-domain-name": "Default"}
    own = {k: v for k, v in by_name(ids).items() if k != "domain-id"} | domains
    add("password: user and project by name, a domain each", own)
    both = {"user-id": ids.user, "tenant-id": ids.project}
    add("password: user and project by id", {**both, "password": layout.PASSWORD})
    add("wrong password", {**by_name(ids), "password": "not-this-one"})


def application_credentials(
    add: Add, ids: Ids, connection: openstack.connection.Connection
) -> None:
    identity = cloud.identity_of(connection)
    name = f"robot-{uuid.uuid4()}"
    credential = identity.create_application_credential(ids.user, name, secret="s3cr3t")
    secret = {"application-credential-secret": "s3cr3t"}
    named = {**secret, "application-credential-name": name}
    by_id = {**secret, "application-credential-id": credential.id}
    add("application credential by id", by_id)
    by_user_id = {**named, "user-id": ids.user}
    add("application credential by name, user by id", by_user_id)
    by_user = {**named, "username": ids.user_name, "user-domain-id": "default"}
    add("application credential by name, user by name", by_user)


def trust(
    add: Add,
    ids: Ids,
    where: places.Places,
    connection: openstack.connection.Connection,
) -> None:
    name = f"trustee-{uuid.uuid4()}"
    with contextlib.closing(cloud.connect(where, accounts.ADMIN)) as admin:
        service = cloud.identity_of(admin)
        trustee = service.create_user(name=name, password="tr-pw", domain_id="default")
        trust_ = cloud.identity_of(connection).create_trust(
            trustor_user_id=ids.user,
            trustee_user_id=trustee.id,
            project_id=ids.project,
            is_impersonation=True,
            roles=[{"name": "member"}],
        )
        conf = {"trustee-id": trustee.id, "trustee-password": "tr-pw"}
        try:
            form = "trust: trustee-id and trustee-password"
            add(form, {**conf, "trust-id": trust_.id})
        finally:
            service.delete_user(trustee)


def clouds_files(add: Add, ids: Ids, folder: pathlib.Path) -> None:
    auth = {
        "auth_url": ids.base["auth-url"],
        "username": ids.user_name,
        "password": layout.PASSWORD,
        "project_name": ids.project_name,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    clouds = folder / "clouds.yaml"
    whole = {"auth": auth, "region_name": layout.REGION, "interface": "internal"}
    clouds.write_text(yaml.safe_dump({"clouds": {"mine": whole}}))
    conf = {"use-clouds": "true", "clouds-file": str(clouds), "cloud": "mine"}
    add("use-clouds: all from clouds.yaml", conf)
    wrong = {**auth, "password": "no", "username": "nobody"}
    other = folder / "other.yaml"
    other.write_text(yaml.safe_dump({"clouds": {"mine": {**whole, "auth": wrong}}}))
    secure = folder / "secure.yaml"
    secret = {"password": layout.PASSWORD}
    secure.write_text(yaml.safe_dump({"clouds": {"mine": {"auth": secret}}}))
    conf = {**conf, "clouds-file": str(other), "username": ids.user_name}
    env = {"OS_CLIENT_SECURE_FILE": str(secure)}
    add("use-clouds: password from secure.yaml, cloud.conf wins", conf, env)


def places_of_the_catalogue(add: Add, ids: Ids) -> None:
    add("region that is not there", {**by_name(ids), "region": "Elsewhere"})
    for form, kind in (
        ("os-endpoint-type internal", "internal"),
        ("os-endpoint-type adminURL", "adminURL"),
    ):
        add(form, {**by_name(ids), "os-endpoint-type": kind})


def tls(add: Add, ids: Ids, where: places.Places, folder: pathlib.Path) -> None:
    """Keystone behind a door of TLS that asks, or does not, for a certificate."""
    now = datetime.datetime.now(datetime.UTC)
    own, other = pki.authority("ours", now), pki.authority("others", now)
    pki.keep(folder, "ca", own)
    pki.keep(folder, "other", other)
    loopback = pki.Subject("keystone", names=("127.0.0.1",))
    pki.keep(folder, "server", pki.issue(own, loopback, now))
    pki.keep(folder, "client", pki.issue(own, pki.Subject("robot"), now))
    ca = {**by_name(ids), "ca-file": str(folder / "ca.crt")}
    pair = {
        "cert-file": str(folder / "client.crt"),
        "key-file": str(folder / "client.key"),
    }
    port = layout.ports(where)[layout.KEYSTONE]
    with terminator(folder, port, asks=False) as url:
        at = {"auth-url": url}
        add("ca-file", {**ca, **at})
        wrong = {**ca, **at, "ca-file": str(folder / "other.crt")}
        add("ca-file of another authority", wrong)
        add("tls-insecure", {**by_name(ids), **at, "tls-insecure": "true"})
    with terminator(folder, port, asks=True) as url:
        at = {"auth-url": url}
        add("cert-file and key-file", {**ca, **at, **pair})
        add("client certificate missing", {**ca, **at})


@contextlib.contextmanager
def terminator(folder: pathlib.Path, port: int, *, asks: bool) -> Iterator[str]:
    """Serve TLS in front of a plain port; asks: for a certificate of our authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "ca.crt")
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = listener.accept()
                    thread = threading.Thread(
                        target=serve_one, args=(plain,), daemon=True
                    )
                    threads.append(thread)
                    thread.start()

        def serve_one(plain: socket.socket) -> None:
            with contextlib.suppress(OSError), plain:
                plain.settimeout(30)
                with context.wrap_socket(plain, server_side=True) as front:
                    exchange_one(front, port)

        accepting = threading.Thread(target=serve, daemon=True)
        accepting.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}/v3"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(10)
            for thread in threads:
                thread.join(40)


def received(front: ssl.SSLSocket) -> bytes:
    part = front.recv(65536)
    if not part:
        raise ConnectionResetError
    return part


def exchange_one(front: ssl.SSLSocket, port: int) -> None:
    """Pass one request on, and its answer back; then the connection ends."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += received(front)
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if line[:11] != b"Connection:"]
    lengths = [int(line[15:]) for line in lines if line[:15] == b"Content-Length:"]
    while len(body) < sum(lengths):
        body += received(front)
    head = b"\r\n".join([*lines, b"Connection: close"])
    with socket.create_connection(("127.0.0.1", port), 30) as back:
        back.sendall(head + b"\r\n\r\n" + body)
        while part := back.recv(65536):
            front.sendall(part)
