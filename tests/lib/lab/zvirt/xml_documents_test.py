"""Documents as the published API describes them, typed by hand, against the engine's.

The SDK is on both sides of most tests, and would hide a mistake that it makes twice.
Source: sections 1.2, 1.4 and 1.6 of the facts; ovirt-engine-api-model, examples.
"""

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

import pytest

from lib.lab.zvirt import seed
from tests.lib.lab.zvirt.stage import CLUSTER, NFS, PROFILE, Stage

_API = "/ovirt-engine/api"
DOCUMENTS: Mapping[str, str] = {
    "vms/{vm}/nics": f"""
        <nics><nic href="{_API}/vms/{{vm}}/nics/{{nic}}" id="{{nic}}">
          <name>nic1</name><interface>virtio</interface>
          <mac><address>56:6f:1a:00:00:00</address></mac>
          <linked>true</linked><plugged>true</plugged>
          <vm href="{_API}/vms/{{vm}}" id="{{vm}}"/>
          <vnic_profile href="{_API}/vnicprofiles/{PROFILE}" id="{PROFILE}"/>
        </nic></nics>""",
    "vms/{vm}/reporteddevices": f"""
        <reported_devices><reported_device
            href="{_API}/vms/{{vm}}/reporteddevices/{{device}}" id="{{device}}">
          <name>eth0</name><type>network</type>
          <mac><address>56:6f:1a:00:00:00</address></mac>
          <ips>
            <ip><address>10.0.0.0</address><version>v4</version></ip>
            <ip><address>fe80::0000:00</address><version>v6</version></ip>
          </ips>
          <vm href="{_API}/vms/{{vm}}" id="{{vm}}"/>
        </reported_device></reported_devices>""",
    "vms/{vm}/diskattachments": f"""
        <disk_attachments><disk_attachment
            href="{_API}/vms/{{vm}}/diskattachments/{{disk}}" id="{{disk}}">
          <active>true</active><bootable>true</bootable>
          <interface>virtio_scsi</interface>
          <disk href="{_API}/disks/{{disk}}" id="{{disk}}"/>
          <vm href="{_API}/vms/{{vm}}" id="{{vm}}"/>
        </disk_attachment></disk_attachments>""",
    "disks/{disk}": f"""
        <disk href="{_API}/disks/{{disk}}" id="{{disk}}">
          <alias>web-1_Disk1</alias><name>web-1_Disk1</name>
          <provisioned_size>4294967296</provisioned_size>
          <format>raw</format><sparse>true</sparse><status>ok</status>
          <storage_type>image</storage_type><content_type>data</content_type>
          <shareable>false</shareable>
          <storage_domains>
            <storage_domain href="{_API}/storagedomains/{NFS}" id="{NFS}"/>
          </storage_domains>
          <vms><vm id="{{vm}}"/></vms>
        </disk>""",
    "vms/{vm}": f"""
        <vm href="{_API}/vms/{{vm}}" id="{{vm}}">
          <actions>
            <link href="{_API}/vms/{{vm}}/start" rel="start"/>
            <link href="{_API}/vms/{{vm}}/stop" rel="stop"/>
            <link href="{_API}/vms/{{vm}}/shutdown" rel="shutdown"/>
          </actions>
          <link href="{_API}/vms/{{vm}}/diskattachments" rel="diskattachments"/>
          <link href="{_API}/vms/{{vm}}/nics" rel="nics"/>
          <link href="{_API}/vms/{{vm}}/reporteddevices" rel="reporteddevices"/>
          <link href="{_API}/vms/{{vm}}/tags" rel="tags"/>
          <name>web-1</name><status>up</status><type>server</type>
          <memory>1073741824</memory>
          <cpu><topology>
            <cores>1</cores><sockets>1</sockets><threads>1</threads>
          </topology></cpu>
          <cluster href="{_API}/clusters/{CLUSTER}" id="{CLUSTER}"/>
          <template href="{_API}/templates/{seed.identifier('template 1')}"
            id="{seed.identifier('template 1')}"/>
        </vm>""",
}


def leaves(element: ElementTree.Element, prefix: str = "") -> Iterator[str]:
    """Yield path, attributes and text of each element without children."""
    path = f"{prefix}/{element.tag}"
    if element.attrib:
        yield f"{path} {sorted(element.attrib.items())}"
    if not len(element) and (element.text or "").strip():
        yield f"{path} = {(element.text or '').strip()}"
    for child in element:
        yield from leaves(child, path)


@pytest.fixture(scope="module")
def stage() -> Stage:
    stage = Stage()
    vm = stage.new_vm(query="?clone=false")
    nic = f"<nic><name>nic1</name><vnic_profile id='{PROFILE}'/></nic>"
    stage.ok("POST", f"vms/{vm}/nics", nic)
    stage.ok("POST", f"vms/{vm}/start", "<action/>")
    stage.advance(20)
    return stage


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_contains_what_the_api_describes(path: str, stage: Stage) -> None:
    vm = stage.get("vms")[0].attrib["id"]
    ids = {
        "vm": vm,
        "nic": stage.get(f"vms/{vm}/nics")[0].attrib["id"],
        "disk": stage.get(f"vms/{vm}/diskattachments")[0].attrib["id"],
        "device": stage.get(f"vms/{vm}/reporteddevices")[1].attrib["id"],
    }
    expected = ElementTree.fromstring(  # noqa: S314 # of this file
        DOCUMENTS[path].format(**ids)
    )
    observed = set(leaves(stage.get(path.format(**ids))))
    ignored = f"/vms/vm [('id', '{vm}')]"  # the engine adds the path of it
    missing = set(leaves(expected)) - observed - {f"/disk{ignored}"}
    assert missing == set()


def test_a_refusal(stage: Stage) -> None:
    body = "<tag><name>root</name></tag>"
    assert stage.reply("POST", "tags", body).body == (
        b"<fault><detail>[Cannot add Tag. Tag name already exists.]</detail>"
        b"<reason>Operation Failed</reason></fault>"
    )
