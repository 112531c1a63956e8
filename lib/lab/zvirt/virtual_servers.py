"""VMs of a simulated engine as servers of a lab: implements `servers.Cloud`.

Also `servers.Migrating`.

As another administrator, by the control socket: the lab sends no request of a client.
"""

import pathlib
from collections.abc import Iterator
from xml.etree import ElementTree

from lib.lab.grounds import servers
from lib.lab.run import waiting
from lib.lab.zvirt import control, seed

_STATUSES = {"up": servers.ACTIVE, "down": servers.SHUTOFF, "": servers.ERROR}
_ACTION = "<action/>"


class EngineServers:
    """VMs of one engine. file: its control socket."""

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file

    def _ask(self, method: str, path: str, body: str = "") -> ElementTree.Element:
        answer = control.ask(
            self._file, do="request", method=method, path=path, body=body
        )
        text = answer["body"] or "<empty/>"
        return ElementTree.fromstring(text)  # noqa: S314 # of the simulated engine

    def items(self) -> tuple[servers.Server, ...]:
        """See the protocol."""
        return tuple(self._server(vm) for vm in self._ask("GET", "vms"))

    def _server(self, vm: ElementTree.Element) -> servers.Server:
        status = vm.findtext("status") or ""
        key = vm.attrib["id"]
        return servers.Server(
            key,
            vm.findtext("name") or "",
            _STATUSES.get(status, status.upper()),
            zone=seed.DATA_CENTER,
            addresses=tuple(self._addresses(key)) if status == "up" else (),
        )

    def _addresses(self, key: str) -> Iterator[str]:
        for device in self._ask("GET", f"vms/{key}/reporteddevices"):
            if device.findtext("name") == "lo":
                continue
            for ip in device.findall("ips/ip"):
                if ip.findtext("version") == "v4":
                    yield ip.findtext("address") or ""

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        """See the protocol: a thin VM of a template, with one NIC. kind: its image."""
        template = kind.image or seed.TEMPLATE
        body = (
            f"<vm><name>{name}</name><cluster><name>{seed.CLUSTER}</name></cluster>"
            f"<template><name>{template}</name></template></vm>"
        )
        key = self._ask("POST", "vms", body).attrib["id"]
        self._wait(key, "down")
        profile = seed.identifier("profile")
        nic = f"<nic><name>nic1</name><vnic_profile id='{profile}'/></nic>"
        self._ask("POST", f"vms/{key}/nics", nic)
        self.start(key)
        return self._server(self._ask("GET", f"vms/{key}"))

    def _wait(self, key: str, status: str) -> None:
        def is_reached() -> bool:
            return self._ask("GET", f"vms/{key}").findtext("status") == status

        waiting.until(f"VM {key} is {status}", is_reached)

    def stop(self, server_id: str) -> None:
        """See the protocol."""
        self._ask("POST", f"vms/{server_id}/shutdown", _ACTION)

    def start(self, server_id: str) -> None:
        """See the protocol."""
        self._ask("POST", f"vms/{server_id}/start", _ACTION)

    def migrate(self, server_id: str) -> None:
        """See `servers.Migrating.migrate`."""
        self._ask("POST", f"vms/{server_id}/migrate", _ACTION)

    def host(self, server_id: str) -> str:
        """See `servers.Migrating.host`; empty while it migrates."""
        vm = self._ask("GET", f"vms/{server_id}")
        host = vm.find("host")
        is_settled = vm.findtext("status") == "up"
        return "" if host is None or not is_settled else host.attrib["id"]

    def delete(self, server_id: str) -> None:
        """See the protocol: it is powered off before."""
        rows = {server.id: server.status for server in self.items()}
        if server_id not in rows:
            return
        if rows[server_id] not in (servers.SHUTOFF, servers.ERROR, "IMAGE_LOCKED"):
            self._ask("POST", f"vms/{server_id}/stop", _ACTION)
            self._wait(server_id, "down")
        self._ask("DELETE", f"vms/{server_id}")
