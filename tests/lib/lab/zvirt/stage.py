"""A simulated engine in the test's process, with a clock that the test moves."""

import json
import urllib.parse
from collections.abc import Mapping
from xml.etree import ElementTree

from lib.lab.zvirt import control, routes, seed
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import Records
from lib.lab.zvirt.service import Reply, Service
from lib.lab.zvirt.sso import SingleSignOn

PASSWORD = "a password that is long"
CLUSTER = seed.identifier("cluster")
NFS = seed.identifier(seed.NFS)
PROFILE = seed.identifier("profile")
ABSENT = "00000000-0000-4000-9000-000000000000"
_API = "/ovirt-engine/api"
_XML = {"content-type": "application/xml", "accept": "application/xml", "version": "4"}


class Stage:
    """One engine, and requests as a client sends them."""

    def __init__(self, *lines: str, records: Records | None = None) -> None:
        """lines: rules of `settings.py`."""
        self.slept: list[float] = []
        self.engine = Engine(
            records or Records(None),
            routes.TIMED,
            clock=lambda: 1_700_000_000.0,
            new_id=seed.numbered(),
        )
        if self.engine.records.is_empty():
            seed.fill(self.engine)
        self.engine.settings.replace(lines)
        self.sso = SingleSignOn(self.engine, {seed.USER: PASSWORD})
        self.service = Service(
            self.engine, self.sso, ca=b"a PEM", sleep=self.slept.append
        )
        self.token = self.log_in().get("access_token", "")

    def log_in(self, **changes: str) -> Mapping[str, str]:
        """Request a token; return the document of the reply."""
        form = {
            "grant_type": "password",
            "scope": "ovirt-app-api",
            "username": seed.USER,
            "password": PASSWORD,
            **changes,
        }
        reply = self.service.handle(
            "POST",
            "/ovirt-engine/sso/oauth/token",
            {},
            urllib.parse.urlencode(form).encode(),
        )
        assert reply is not None
        document: Mapping[str, str] = json.loads(reply.body)
        return {**document, "status": str(reply.status)}

    def send(
        self,
        method: str,
        path: str,
        body: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply | None:
        """Send a request; path: below the root of the API."""
        all_headers = {
            **_XML,
            "authorization": f"Bearer {self.token}",
            **(headers or {}),
        }
        target = f"{_API}/{path}".rstrip("/")
        return self.service.handle(method, target, all_headers, body.encode())

    def reply(self, method: str, path: str, body: str = "", **headers: str) -> Reply:
        """Send a request that is answered."""
        reply = self.send(method, path, body, headers)
        assert reply is not None
        return reply

    def get(self, path: str) -> ElementTree.Element:
        """Read a document."""
        return self.ok("GET", path)

    def ok(self, method: str, path: str, body: str = "") -> ElementTree.Element:
        """Send a request that succeeds; return its document."""
        reply = self.reply(method, path, body)
        assert 200 <= reply.status < 300, reply
        return _parsed(reply.body or b"<empty/>")

    def refused(self, method: str, path: str, body: str = "") -> str:
        """Send a request that is refused; return its status and the fault's text."""
        reply = self.reply(method, path, body)
        assert reply.status >= 400, reply
        if b"<fault>" not in reply.body:
            return f"{reply.status} {reply.body.decode()}".strip()
        fault = _parsed(reply.body)
        return f"{reply.status} {fault.findtext('detail')}"

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        self.engine.advance(seconds)

    def set(self, kind: str, name: str, **members: object) -> None:
        """Change an object as its environment does."""
        request = {"do": "set", "kind": kind, "name": name, **members}
        control.carry_out(self.service, request)

    def new_vm(self, name: str = "web-1", more: str = "", query: str = "") -> str:
        """Create a VM from the template, and wait until it is down; return its ID."""
        vm = self.ok("POST", f"vms{query}", vm_body(name, more))
        self.advance(10)
        return vm.attrib["id"]

    def new_disk(self, alias: str = "data-1", more: str = "") -> str:
        """Create a disk, and wait until its job has ended; return its ID."""
        disk = self.ok("POST", "disks", disk_body(alias, more))
        self.advance(10)
        return disk.attrib["id"]

    def run_vm(self, name: str = "web-1", more: str = "") -> str:
        """Create and start a VM, and wait until it is up; return its ID."""
        key = self.new_vm(name, more)
        self.ok("POST", f"vms/{key}/start", "<action/>")
        self.advance(20)
        return key

    def status(self, path: str) -> str | None:
        """Return the status of an object."""
        return self.get(path).findtext("status")

    def attach(self, vm: str, disk: str, more: str = "") -> ElementTree.Element:
        """Attach a disk to a VM."""
        path = f"vms/{vm}/diskattachments"
        return self.ok("POST", path, attachment_body(disk, more))


def _parsed(body: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(body)  # noqa: S314 # of the simulated engine


def vm_body(name: str = "web-1", more: str = "", template: str = seed.TEMPLATE) -> str:
    """Return a request for a VM."""
    return (
        f"<vm><name>{name}</name><cluster id='{CLUSTER}'/>"
        f"<template><name>{template}</name></template>{more}</vm>"
    )


def disk_body(alias: str = "data-1", more: str = "", size: int = 1 << 30) -> str:
    """Return a request for a disk."""
    return (
        f"<disk><alias>{alias}</alias><format>raw</format><sparse>false</sparse>"
        f"<provisioned_size>{size}</provisioned_size><storage_domains>"
        f"<storage_domain id='{NFS}'/></storage_domains>{more}</disk>"
    )


def attachment_body(disk: str, more: str = "") -> str:
    """Return a request for an attachment."""
    return (
        "<disk_attachment><bootable>false</bootable>"
        f"<interface>virtio_scsi</interface>{more}<disk id='{disk}'/></disk_attachment>"
    )
