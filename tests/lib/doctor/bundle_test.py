"""The archive of `mooring doctor --bundle`: its parts, and no secret in it."""

import json
import pathlib
import stat
import tarfile

import pytest

from lib.doctor import bundle, components
from lib.kube import errors, resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.process import config

SECRET = 'hunter2"and\\more'
CONF = f"""
[Global]
auth-url = http://user:inurl@cloud/v3
username = someone
password = {SECRET}
application-credential-id = "0a1b2c3d"
  application-credential-secret="another one"
a line of another form
[LoadBalancer]
lb-provider = amphora
"""


def test_secret_values_are_removed_by_their_keys() -> None:
    redacted = bundle.redact(CONF)
    print(redacted.text)
    assert redacted.secrets == {SECRET, "0a1b2c3d", "another one"}
    for word in (SECRET, "0a1b2c3d", "another one", "inurl", "another form"):
        assert word not in redacted.text
    for word in ("username = someone", "lb-provider = amphora", "[LoadBalancer]"):
        assert word in redacted.text
    assert SECRET not in repr(redacted)


def extracted(file: pathlib.Path) -> dict[str, str]:
    with tarfile.open(file) as tar:
        members = {member.name: tar.extractfile(member) for member in tar}
    with tarfile.open(file) as tar:
        return {
            name: content.read().decode()
            for name in members
            if (content := tar.extractfile(name)) is not None
        }


def test_a_secret_is_removed_from_every_file(tmp_path: pathlib.Path) -> None:
    """Also as JSON writes it; and what is a secret by its form."""
    file = tmp_path / "bundle.tar.gz"
    contents = {
        "events.json": json.dumps({"message": f"no: {SECRET}"}),
        "logs/a.log": f"tried {SECRET}, Bearer abcdefgh12345678",
    }
    bundle.write(file, contents, {SECRET})
    read = extracted(file)
    print(read)
    assert set(read) == {f"mooring-bundle/{name}" for name in contents}
    assert json.loads(read["mooring-bundle/events.json"])
    for text in read.values():
        assert "hunter2" not in text
        assert "abcdefgh" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_existing_file_is_kept(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "bundle.tar.gz"
    file.write_text("mine")
    with pytest.raises(config.ConfigError, match="must not exist"):
        bundle.write(file, {}, ())
    assert file.read_text() == "mine"
    with pytest.raises(config.ConfigError, match="no such file"):
        bundle.write(tmp_path / "absent" / "b", {}, ())


def test_a_part_that_fails_is_a_sentence() -> None:
    def forbidden() -> object:
        raise errors.Forbidden("no", operation="GET /x", status=403)

    def broken() -> object:
        raise ZeroDivisionError(SECRET)

    assert bundle.part(forbidden).startswith("not available: GET /x")
    assert bundle.part(broken) == (
        "not available: unexpected error (ZeroDivisionError)\n"
    )
    assert bundle.part(lambda: {"a": 1}) == '{\n  "a": 1\n}\n'


def pod(name: str, app: str) -> dict[str, object]:
    about = {
        "name": name,
        "namespace": "kube-system",
        "labels": {"app.kubernetes.io/name": app},
    }
    containers = [{"name": "main"}, {"name": "sidecar"}]
    return {"metadata": about, "spec": {"containers": containers}}


def test_logs_of_each_container_of_the_components() -> None:
    """One that cannot be read is a sentence; other Pods are not read."""
    api = fake_api.FakeApi()
    api.put(resources.PODS, pod("ccm-1", "openstack-ccm"))
    api.put(resources.PODS, pod("web-1", "web"))
    refused = errors.Unavailable("no kubelet", operation="GET /log", status=502)
    api.faults.append(calls.Fault(refused, name="ccm-1"))
    logs = bundle.logs(api, ("openstack-ccm",), 5)
    assert sorted(logs) == [
        "logs/kube-system/ccm-1/main.log",
        "logs/kube-system/ccm-1/sidecar.log",
    ]
    assert "no kubelet" in logs["logs/kube-system/ccm-1/main.log"]
    asked = [(call.name, call.subresource) for call in api.calls if call.verb == "get"]
    assert asked == [("ccm-1", "log")] * 2


def test_no_pods_are_reported() -> None:
    logs = bundle.logs(fake_api.FakeApi(), ("openstack-ccm",), 5)
    text = f"no Pods with the label {components.LABEL} in openstack-ccm\n"
    assert logs == {"logs/none.txt": text}


def test_events_have_their_object_and_time() -> None:
    api = fake_api.FakeApi()
    about = {"kind": "Node", "name": "node-1", "uid": "node-1"}
    for second in (2, 1):
        event: dict[str, object] = {
            "metadata": {"name": f"e{second}", "namespace": "default"},
            "involvedObject": about,
            "type": "Warning",
            "reason": f"Reason{second}",
            "lastTimestamp": f"2026-01-01T00:00:0{second}Z",
        }
        api.put(resources.EVENTS, event)
    rows = bundle.events(api, 5)
    assert [row["reason"] for row in rows] == ["Reason1", "Reason2"]
    assert {(row["kind"], row["object"]) for row in rows} == {("Node", "node-1")}
