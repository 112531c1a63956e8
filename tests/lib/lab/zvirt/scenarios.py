"""Scenarios of the simulated engine: sign-on, conventions and search.

Each proves the rules that it names: `transitions_test.py` runs it, and checks that the
engine has applied them. Texts are those of the published facts.
"""

import dataclasses
import time
from collections.abc import Callable

from lib.lab.zvirt import seed
from tests.lib.lab.zvirt.stage import ABSENT, CLUSTER, NFS, Stage, disk_body, vm_body

SCENARIOS: list["Scenario"] = []
DATA_CENTER = seed.identifier("data center")


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. rules: those that it proves. lines: of `settings.py`."""

    run: Callable[[Stage], None]
    rules: tuple[str, ...]
    lines: tuple[str, ...] = ()


def proves(
    *rules: str, lines: tuple[str, ...] = ()
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Register a scenario."""

    def register(run: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS.append(Scenario(run, rules, lines))
        return run

    return register


# Single sign-on.


@proves("sso-token")
def a_token_is_granted(stage: Stage) -> None:
    answer = stage.log_in()
    assert answer["token_type"] == "bearer"
    assert answer["scope"] == "ovirt-app-api"
    assert int(answer["exp"]) == 1_700_000_000_000 + 360_000_000


@proves("sso-wrong-password", "sso-locked")
def five_failures_lock_the_account(stage: Stage) -> None:
    for _ in range(5):
        answer = stage.log_in(password="wrong")
        assert (answer["status"], answer["error_code"]) == ("400", "access_denied")
        assert "incorrect" in answer["error"]
    assert "locked" in stage.log_in()["error"]
    stage.advance(3601)
    assert stage.log_in()["status"] == "200"


@proves("sso-profile")
def a_user_has_a_profile(stage: Stage) -> None:
    assert "No valid profile" in stage.log_in(username="admin")["error"]


@proves("sso-grant", "sso-incomplete")
def malformed_requests_of_tokens(stage: Stage) -> None:
    grant = stage.log_in(grant_type="magic")
    assert grant["error_code"] == "unsupported_grant_type"
    assert stage.log_in(password="")["error_code"] == "invalid_request"


@proves("sso-other-scope")
def errors_of_other_scopes_have_another_shape(stage: Stage) -> None:
    answer = stage.log_in(scope="ovirt-app-admin", password="wrong")
    assert answer["error"] == "access_denied"
    assert "incorrect" in answer["error_description"]


@proves("sso-logout", "sso-unauthenticated")
def a_token_ends_by_logout(stage: Stage) -> None:
    path = "/ovirt-engine/services/sso-logout"
    form = f"scope=ovirt-app-api&token={stage.token}".encode()
    reply = stage.service.handle("POST", path, {}, form)
    assert reply is not None
    assert reply.body == b"{}"
    refused = stage.reply("GET", "")
    assert refused.status == 401
    assert refused.content_type.startswith("text/html")
    assert "WWW-Authenticate" in refused.headers
    assert b"fault" not in refused.body


@proves("sso-expired")
def a_token_expires(stage: Stage) -> None:
    stage.sso.idle_s = float("inf")
    stage.advance(359_999)
    assert stage.reply("GET", "").status == 200
    stage.advance(2)
    assert stage.reply("GET", "").status == 401


@proves("sso-idle")
def an_idle_token_is_refused(stage: Stage) -> None:
    stage.advance(1799)
    assert stage.reply("GET", "").status == 200
    stage.advance(1801)
    assert stage.reply("GET", "").status == 401


@proves("sso-basic")
def basic_authentication(stage: Stage) -> None:
    text = "YWRtaW5AaW50ZXJuYWw6YSBwYXNzd29yZCB0aGF0IGlzIGxvbmc="
    assert stage.reply("GET", "", authorization=f"Basic {text}").status == 200
    assert stage.reply("GET", "", authorization="Basic !").status == 401


@proves("sso-ca")
def the_ca_is_public(stage: Stage) -> None:
    path = "/ovirt-engine/services/pki-resource?resource=ca-certificate"
    reply = stage.service.handle("GET", path, {}, b"")
    assert reply is not None
    assert reply.body == b"a PEM"


# Conventions.


@proves("call-root")
def the_root_describes_the_engine(stage: Stage) -> None:
    root = stage.get("")
    assert root.tag == "api"
    assert root.findtext("product_info/version/major") == "4"
    assert root.findtext("product_info/instance_id")
    assert root.find("special_objects/blank_template") is not None


@proves("call-version", "call-media", "call-accept", "call-correlation")
def headers_are_checked(stage: Stage) -> None:
    assert stage.reply("GET", "vms", version="3").status == 400
    assert stage.reply("GET", "vms", accept="application/json").status == 406
    assert (
        stage.reply("POST", "vms", vm_body(), **{"content-type": "text/plain"}).status
        == 415
    )
    long = stage.refused("POST", f"vms?correlation_id={'x' * 51}", vm_body())
    assert long.startswith("400")


@proves("call-path", "call-method")
def unknown_paths_and_methods(stage: Stage) -> None:
    assert stage.reply("GET", "nothing").status == 404
    assert b"<html>" in stage.reply("GET", "nothing").body
    assert stage.reply("PUT", "vms", "<vm/>").status == 405


@proves("call-absent", "call-malformed-id")
def missing_objects_have_an_empty_answer(stage: Stage) -> None:
    reply = stage.reply("GET", f"vms/{ABSENT}")
    assert (reply.status, reply.body) == (404, b"")
    assert stage.refused("GET", "vms/x").startswith("400")


@proves("call-reference")
def a_missing_reference_has_a_fault(stage: Stage) -> None:
    text = stage.refused("POST", "vms", vm_body(template="absent"))
    assert text == "404 [Entity not found: Template: absent]"


@proves("call-malformed-body", "call-incomplete", "call-enum", "call-element")
def bodies_are_checked(stage: Stage) -> None:
    assert stage.refused("POST", "vms", "<vm").startswith("400 the body is not XML")
    assert stage.refused("POST", "vms", "<disk/>").startswith("400 expected element vm")
    text = stage.refused("POST", "vms", "<vm><comment>c</comment></vm>")
    assert text == "400 Vm [name, cluster.id|name, template.id|name] required for add"
    enum = vm_body(more="<type>mainframe</type>")
    assert "Invalid Enum value mainframe" in stage.refused("POST", "vms", enum)
    unknown = vm_body(more="<cpu><topologie>1</topologie></cpu>")
    assert "cpu/topologie" in stage.refused("POST", "vms", unknown)
    other = vm_body(more="<status>up</status>")
    assert "Unexpected element status" in stage.refused("POST", "vms", other)


@proves("call-created", "call-accepted")
def a_create_is_201_or_202(stage: Stage) -> None:
    tag = stage.reply("POST", "tags", "<tag><name>t</name></tag>")
    assert tag.status == 201
    assert tag.headers["Location"].startswith("/ovirt-engine/api/tags/")
    vm = stage.reply("POST", "vms", vm_body())
    assert vm.status == 202
    assert b"<creation_status>pending</creation_status>" in vm.body
    assert b'rel="creation_status"' in vm.body


@proves("call-expect-created")
def expect_created_waits_for_the_job(stage: Stage) -> None:
    stage.engine.settings.replace(["delay * 0.02"])
    stage.engine.use_clock(time.time)
    stage.token = stage.log_in()["access_token"]
    reply = stage.reply("POST", "disks", disk_body(), expect="201-created")
    assert reply.status == 201
    assert b"<status>ok</status>" in reply.body


@proves("call-async", "call-action")
def an_action_names_its_job(stage: Stage) -> None:
    vm = stage.new_vm()
    action = stage.ok("POST", f"vms/{vm}/start", "<action/>")
    assert action.findtext("status") == "complete"
    assert action.find("job") is not None
    reply = stage.reply("POST", f"vms/{vm}/stop?async=true", "<action/>")
    assert reply.status == 202


@proves("call-forbidden", lines=("forbid DELETE api/disks/*",))
def a_missing_permit_is_403(stage: Stage) -> None:
    disk = stage.new_disk()
    text = stage.refused("DELETE", f"disks/{disk}")
    assert text == "403 [User is not authorized to perform this action.]"


@proves("call-hidden")
def objects_without_permission_disappear(stage: Stage) -> None:
    vm = stage.new_vm()
    stage.engine.settings.add("hide web-*")
    assert len(stage.get("vms")) == 0
    assert stage.refused("GET", f"vms/{vm}") == "404"


@proves("call-follow", "call-follow-unknown", "call-links")
def linked_objects_are_included(stage: Stage) -> None:
    vm = stage.new_vm()
    plain = stage.get(f"vms/{vm}")
    links = {link.attrib["rel"] for link in plain.findall("link")}
    assert {"nics", "diskattachments", "reporteddevices", "tags"} <= links
    assert plain.find("actions/link[@rel='start']") is not None
    whole = stage.get("vms?follow=disk_attachments.disk,nics").find("vm")
    assert whole is not None
    assert (
        whole.findtext("disk_attachments/disk_attachment/disk/alias") == "web-1_Disk1"
    )
    assert whole.find("link[@rel='nics']") is None
    assert whole.find("nics") is not None
    assert stage.refused("GET", "vms?follow=wheels").startswith("400")


@proves("call-all-content")
def all_content_shows_the_console(stage: Stage) -> None:
    vm = stage.new_vm()
    assert stage.get(f"vms/{vm}").find("console") is None
    assert stage.get(f"vms/{vm}?all_content=true").find("console") is not None


@proves("call-max")
def lists_are_limited_on_request(stage: Stage) -> None:
    for name in ("web-1", "web-2", "web-3"):
        stage.new_vm(name)
    assert len(stage.get("vms")) == 3
    assert len(stage.get("vms?max=2")) == 2


@proves("call-empty")
def collections_without_use_are_empty(stage: Stage) -> None:
    vm = stage.new_vm()
    for name in ("cdroms", "graphicsconsoles", "numanodes", "watchdogs", "snapshots"):
        assert len(stage.get(f"vms/{vm}/{name}")) == 0
    assert len(stage.get("instancetypes")) == 0


@proves("job-shown", "event-shown")
def jobs_and_events_carry_the_correlation_id(stage: Stage) -> None:
    stage.ok("POST", "disks?correlation_id=disk_create_1", disk_body())
    (job,) = stage.get("jobs?search=correlation_id%3Ddisk_create_1")
    assert job.findtext("status") == "started"
    stage.advance(10)
    (job,) = stage.get("jobs?search=correlation_id%3Ddisk_create_1")
    assert job.findtext("status") == "finished"
    (event,) = stage.get("events?search=correlation_id%3Ddisk_create_1")
    assert event.findtext("code") == "2020"
    last = event.findtext("index")
    assert len(stage.get(f"events?from={last}")) == 0


# Search.


@proves("search-filter", "search-case")
def the_search_language(stage: Stage) -> None:
    for name in ("web-1", "WEB_2", "webX2", "db-1"):
        stage.new_vm(name)
    for text, expected in (
        ("name%3Dweb-1", ["web-1"]),
        ("name%3DWEB-1", ["web-1"]),
        ("name%3Dweb_2", ["WEB_2"]),
        ("name%3Dweb*", ["web-1", "WEB_2", "webX2"]),
        ("name%3D%22web-1%22%20or%20name%3Ddb-1", ["web-1", "db-1"]),
        ("name!%3Dweb*%20and%20status%3Ddown", ["db-1"]),
        ("memory%20%3E%20512%20and%20(name%3Ddb-1%20or%20name%3Dx)", ["db-1"]),
        ("cluster%3DDefault%20and%20name%3Ddb*", ["db-1"]),
    ):
        rows = stage.get(f"vms?search={text}")
        assert [row.findtext("name") for row in rows] == expected, text
    assert len(stage.get("vms?search=name%3DWEB-1&case_sensitive=true")) == 0


@proves("search-order", "search-page")
def pages_of_a_search(stage: Stage) -> None:
    for name in ("c", "a", "b"):
        stage.new_vm(name)
    first = stage.get("vms?search=sortby%20name%20asc%20page%201&max=2")
    second = stage.get("vms?search=sortby%20name%20asc%20page%202&max=2")
    names = [row.findtext("name") for row in (*first, *second)]
    assert names == ["a", "b", "c"]
    descending = stage.get("vms?search=sortby%20name%20desc")
    assert [row.findtext("name") for row in descending] == ["c", "b", "a"]


@proves("search-cross", "search-text")
def fields_of_other_types_and_bare_words(stage: Stage) -> None:
    stage.new_vm("web-1", query="?clone=false")
    (template,) = stage.get("templates?search=vm.name%3Dweb-1")
    assert template.findtext("name") == seed.TEMPLATE
    assert len(stage.get("vms?search=web*")) == 1
    assert len(stage.get("vms?search=nothing")) == 0


@proves("search-invalid")
def invalid_searches(stage: Stage) -> None:
    for text in ("wheels%3D4", "name%3D'a'", "name%3Da%3B", "memory%3Ea", "name%3D"):
        assert stage.refused("GET", f"vms?search={text}").startswith("400"), text


# Storage domains and templates.


@proves("domain-status-omitted", "domain-status-shown")
def the_status_of_a_domain(stage: Stage) -> None:
    stage.set("storage_domain", seed.NFS, status="maintenance")
    (domain,) = stage.get("storagedomains?search=name%3Dnfs-1")
    assert domain.find("status") is None
    assert domain.findtext("external_status") == "ok"
    path = f"datacenters/{DATA_CENTER}/storagedomains/{NFS}"
    assert stage.status(path) == "maintenance"


@proves("template-disks")
def a_template_has_attachments(stage: Stage) -> None:
    template = seed.identifier("template 1")
    (attachment,) = stage.get(f"templates/{template}/diskattachments")
    assert attachment.findtext("bootable") == "true"
    assert attachment.attrib["href"].startswith(
        f"/ovirt-engine/api/templates/{template}"
    )


@proves(
    "tag-created", "tag-name-taken", "tag-assigned", "tag-unassigned", "tag-removed"
)
def tags(stage: Stage) -> None:
    vm = stage.new_vm()
    body = "<tag><name>t</name><description>d</description></tag>"
    tag = stage.ok("POST", "tags", body).attrib["id"]
    assert stage.refused("POST", "tags", body).startswith("409")
    for reference in (f"<tag id='{tag}'/>", "<tag><name>t</name></tag>"):
        stage.ok("POST", f"vms/{vm}/tags", reference)
    assert [row.findtext("name") for row in stage.get(f"vms/{vm}/tags")] == ["t"]
    assert len(stage.get("vms?search=tag%3Dt")) == 1
    stage.ok("DELETE", f"vms/{vm}/tags/{tag}")
    assert stage.refused("DELETE", f"vms/{vm}/tags/{tag}") == "404"
    stage.ok("POST", f"vms/{vm}/tags", f"<tag id='{tag}'/>")
    stage.ok("DELETE", f"tags/{tag}")
    assert len(stage.get(f"vms/{vm}/tags")) == 0


@proves(
    "affinity-created",
    "affinity-name-taken",
    "affinity-member",
    "affinity-enforced",
    "affinity-removed",
)
def affinity_groups(stage: Stage) -> None:
    path = f"clusters/{CLUSTER}/affinitygroups"
    body = (
        "<affinity_group><name>g</name><vms_rule><enabled>true</enabled>"
        "<enforcing>true</enforcing><positive>false</positive></vms_rule>"
        "</affinity_group>"
    )
    group = stage.ok("POST", path, body).attrib["id"]
    assert stage.refused("POST", path, body).startswith("409")
    vms = [stage.new_vm(f"web-{number}") for number in range(4)]
    for vm in vms:
        stage.ok("POST", f"{path}/{group}/vms", f"<vm id='{vm}'/>")
    for vm in vms[:3]:
        stage.ok("POST", f"vms/{vm}/start", "<action/>")
    hosts = {stage.get(f"vms/{vm}").find("host") for vm in vms[:3]}
    assert len({host.attrib["id"] for host in hosts if host is not None}) == 3
    text = stage.refused("POST", f"vms/{vms[3]}/start", "<action/>")
    assert "VmAffinityGroups" in text
    stage.ok("DELETE", f"{path}/{group}/vms/{vms[3]}")
    stage.ok("POST", f"vms/{vms[3]}/start", "<action/>")
    stage.ok("DELETE", f"{path}/{group}")
    assert len(stage.get("vms")) == 4
