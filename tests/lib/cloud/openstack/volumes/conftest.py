"""A stand-in for Cinder, and for the part of Nova that attaches, in their wire format.

It is asked by the stand-in of the folder above. Nothing moves by itself: a volume that
is being made stays so until a test says otherwise.
"""

import datetime
import json
import urllib.parse
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.volumes import cloud
from lib.cloud.support import cluster_witnesses

Json = dict[str, object]
Answer = tuple[int, dict[str, str], bytes]
NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
SERVER = "5e000000-0000-0000-0000-000000000001"


class Call(Protocol):
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Json


class StandIn(Protocol):
    more: Callable[[Call, str], Answer | None]
    volume_versions: tuple[str, str]
    calls: list[Call]


def volume_id(number: int) -> str:
    """Return an id such as Cinder's."""
    return f"c0000000-0000-0000-0000-{number:012}"


class Cinder:
    """What Cinder holds, and which server holds which volumes; changed at will.

    reservations: attachments as GET /attachments shows them. lacking: volumes that
    lists do not show, though they are there.
    """

    def __init__(self) -> None:
        self.volumes: dict[str, Json] = {}
        self.reservations: list[Json] = []
        self.messages: list[Json] = []
        self.types = ["fast", "slow"]
        self.specs: dict[str, Json] = {"fast": {}, "slow": {}}
        self.zones = ["nova"]
        self.servers = {SERVER}
        self.quota: dict[str, Json | str] = {"id": "project-1"}
        self.page = 1000
        self.lacking: set[str] = set()
        self.actions: list[str] = []
        self.has_snapshots: set[str] = set()
        self.types_per_page = 1000
        self.type_ids: dict[str, str] = {}

    def put(self, number: int, **parts: object) -> str:
        """Make or replace a volume as Cinder shows it; give its id."""
        own = volume_id(number)
        self.volumes[own] = {
            "id": own,
            "name": f"pvc-{number}",
            "size": 1,
            "status": "available",
            "availability_zone": "nova",
            "attachments": [],
            "metadata": {},
            "volume_type": "fast",
            "source_volid": None,
            "multiattach": False,
            "created_at": "2026-01-01T11:00:00.000000",
            "updated_at": "2026-01-01T11:30:00.000000",
            "links": [],
            "encrypted": False,
        } | parts
        return own

    def answer(self, call: Call, name: str) -> Answer | None:
        """Answer a call to Cinder, or to Nova's attachments."""
        parts = name.split("/")
        if parts[0] == "servers" and parts[2:3] == ["os-volume_attachments"]:
            return self._nova(call, parts)
        if parts[0] == "servers" and len(parts) == 2:
            return self._server(parts[1])
        return self._volumes(call, parts) or self._besides(call, parts)

    def _volumes(self, call: Call, parts: list[str]) -> Answer | None:
        match call.method, parts:
            case "GET", ["volumes", "detail"]:
                return self._list(call)
            case "GET", ["volumes", volume_id]:
                return self._one(volume_id)
            case "POST", ["volumes"]:
                return self._create(call)
            case "DELETE", ["volumes", volume_id]:
                return self._delete(volume_id)
            case "POST", ["volumes", volume_id, "action"]:
                return self._act(volume_id, call)
        return None

    def _besides(self, call: Call, parts: list[str]) -> Answer | None:
        match call.method, parts:
            case _, ["attachments", *rest]:
                return self._attachments(call, rest)
            case "GET", ["messages"]:
                desired = call.query["resource_uuid"][0]
                return ok(
                    {"messages": [m for m in self.messages if m["of"] == desired]}
                )
            case "GET", ["types", *rest]:
                return self._types(call, bool(rest))
            case "GET", ["os-availability-zone"]:
                state: Json = {"available": True}
                zones = [{"zoneName": z, "zoneState": state} for z in self.zones]
                return ok({"availabilityZoneInfo": zones})
            case "GET", ["os-quota-sets", _]:
                return ok({"quota_set": self.quota})
        return None

    def _types(self, call: Call, is_default: bool) -> Answer:
        """Source: cinder/api/v3/views/types.py: volume_type_links."""
        shown = [self._type(name) for name in self.types]
        if is_default:
            return ok({"volume_type": shown[0]})
        marker = call.query.get("marker", [""])[0]
        start = [type_["id"] for type_ in shown].index(marker) + 1 if marker else 0
        page = shown[start : start + self.types_per_page]
        body: Json = {"volume_types": page}
        if start + len(page) < len(shown):
            query = urllib.parse.urlencode({"marker": page[-1]["id"]})
            href = f"http://internal.invalid/v3/types?{query}"
            body["volume_type_links"] = [{"rel": "next", "href": href}]
        return ok(body)

    def _type(self, name: str) -> Json:
        own = self.type_ids.get(name, f"id-of-{name}")
        return {"id": own, "name": name, "extra_specs": self.specs[name]}

    def _list(self, call: Call) -> Answer:
        names = call.query.get("name")
        items = [
            volume
            for volume in self.volumes.values()
            if volume["id"] not in self.lacking
            and (names is None or str(volume["name"]).lower() == names[0].lower())
        ]
        limit = min(int(call.query.get("limit", ["1000"])[0]), self.page)
        ids = [item["id"] for item in items]
        marker = call.query.get("marker", [""])[0]
        start = ids.index(marker) + 1 if marker else 0
        page = items[start : start + limit]
        body: Json = {"volumes": page}
        if len(page) == limit and page:
            query = urllib.parse.urlencode({"marker": page[-1]["id"]})
            href = f"http://internal.invalid/v3/volumes/detail?{query}"
            body["volumes_links"] = [{"rel": "next", "href": href}]
        return ok(body)

    def _one(self, desired: str) -> Answer:
        if desired not in self.volumes:
            return missing(f"Volume {desired} could not be found.")
        return ok({"volume": self.volumes[desired]})

    def _create(self, call: Call) -> Answer:
        asked = call.body["volume"]
        assert isinstance(asked, dict)
        desired = asked.get("volume_type", "fast")
        if desired not in (*self.types, *(f"id-of-{name}" for name in self.types)):
            return missing(f"Volume type with name {desired} could not be found.")
        if asked.get("availability_zone", "nova") not in self.zones:
            zone = asked["availability_zone"]
            return bad(f"Availability zone '{zone}' is invalid.")
        source = asked.get("source_volid")
        if source and source not in self.volumes:
            return missing(f"Volume {source} could not be found.")
        number = len(self.volumes) + 1
        own = self.put(
            number,
            name=asked["name"],
            size=asked["size"],
            status="creating",
            metadata=asked["metadata"],
            volume_type=desired,
            source_volid=source,
            multiattach="multiattach" in self.specs[str(desired)],
        )
        return 202, {}, json.dumps({"volume": self.volumes[own]}).encode()

    def _delete(self, desired: str) -> Answer:
        if desired not in self.volumes:
            return missing(f"Volume {desired} could not be found.")
        is_deletable = self.volumes[desired]["status"] in ("available", "error")
        if not is_deletable or desired in self.has_snapshots:
            return bad(
                "Invalid volume: Volume status must be available or error and must not"
                " be migrating, attached, belong to a group, have snapshots."
            )
        self.volumes[desired]["status"] = "deleting"
        return 202, {}, b""

    def _act(self, desired: str, call: Call) -> Answer:
        self.actions.append(next(iter(call.body)))
        if desired not in self.volumes:
            return missing(f"Volume {desired} could not be found.")
        match call.body:
            case {"os-extend": {"new_size": size}}:
                self.volumes[desired] |= {"size": size, "status": "extending"}
            case {"os-retype": {"new_type": name}}:
                if name not in self.types:
                    return bad(f"Invalid input received: Invalid volume_type {name}")
                self.volumes[desired] |= {"volume_type": name, "status": "retyping"}
            case {"os-roll_detaching": _}:
                self.volumes[desired]["status"] = "in-use"
        return 202, {}, b""

    def _attachments(self, call: Call, rest: list[str]) -> Answer:
        if call.method == "DELETE":
            before = len(self.reservations)
            self.reservations = [r for r in self.reservations if r["id"] != rest[0]]
            if len(self.reservations) == before:
                return missing("Volume attachment could not be found.")
            return ok({"attachments": []})
        desired = call.query["volume_id"][0]
        shown = [
            reservation
            for reservation in self.reservations
            if reservation["volume_id"] == desired
        ]
        return ok({"attachments": shown})

    def _server(self, server: str) -> Answer:
        if server not in self.servers:
            return missing(f"Instance {server} could not be found.")
        return ok({"server": {"id": server, "name": "node"}})

    def _nova(self, call: Call, parts: list[str]) -> Answer:
        server = parts[1]
        if server not in self.servers:
            return missing(f"Instance {server} could not be found.")
        if call.method == "POST":
            asked = call.body["volumeAttachment"]
            assert isinstance(asked, dict)
            desired = str(asked["volumeId"])
            if desired not in self.volumes:
                return missing(f"Volume {desired} could not be found.")
            self.volumes[desired]["status"] = "attaching"
            return ok({"volumeAttachment": {"volumeId": desired, "serverId": server}})
        desired = parts[3]
        if desired not in self.volumes:
            return missing(f"Volume {desired} could not be found.")
        attachments = self.volumes[desired]["attachments"]
        assert isinstance(attachments, list)
        if all(attachment["server_id"] != server for attachment in attachments):
            text = f"Instance {server} is not attached to volume {desired}"
            return missing(text)
        self.volumes[desired]["status"] = "detaching"
        return 202, {}, b""


def ok(body: Json) -> Answer:
    return 200, {"X-Openstack-Request-Id": "req-ok"}, json.dumps(body).encode()


def missing(message: str) -> Answer:
    body = {"itemNotFound": {"code": 404, "message": message}}
    return 404, {}, json.dumps(body).encode()


def bad(message: str) -> Answer:
    body = {"badRequest": {"code": 400, "message": message}}
    return 400, {}, json.dumps(body).encode()


@pytest.fixture()
def cinder(stand_in: StandIn) -> Cinder:
    """Return an empty Cinder behind the stand-in."""
    own = Cinder()
    stand_in.more = own.answer
    return own


MakeVolumes = Callable[..., cloud.OpenStackVolumes]


@pytest.fixture()
def make_volumes(
    cinder: Cinder, make_client: Callable[[], client.Client]
) -> MakeVolumes:
    """Return a factory of the room's volumes; keywords are of [BlockStorage].

    cluster: as of the volumes of csi-controller.
    """
    del cinder

    def make(
        cluster: str | None = None,
        node_ids: cluster_witnesses.NodeIds = cluster_witnesses.no_node_ids,
        **parts: object,
    ) -> cloud.OpenStackVolumes:
        storage = settings.BlockStorage(**parts)  # type: ignore[arg-type]  # any part
        own = (
            None if cluster is None else cluster_witnesses.OfCluster(cluster, node_ids)
        )
        return cloud.OpenStackVolumes(
            make_client(), storage, now=lambda: NOW, cluster=own
        )

    return make
