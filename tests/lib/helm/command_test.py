"""Arguments, values file and errors of the helm command, with a recording program."""

import json
import pathlib
import stat
import threading

import pytest

from lib.helm import command, errors, model, outcome

RECORDER = """#!/usr/bin/env python3
import json, os, sys
arguments = sys.argv[1:]
def file(name):
    return open(os.path.join(os.path.dirname(__file__), name))
if arguments[0] == "version":
    print(file("version").read(), end="")
    sys.exit(0)
record = {"arguments": arguments, "env": dict(os.environ)}
if "--values" in arguments:
    path = arguments[arguments.index("--values") + 1]
    record["mode"] = oct(os.stat(path).st_mode & 0o777)
    record["values"] = json.load(open(path))
json.dump(record, open(os.path.join(os.path.dirname(__file__), "record"), "w"))
print(file("output").read(), end="")
sys.stderr.write(file("error").read())
sys.exit(int(file("code").read()))
"""
VALUES = {"endpoints": {"auth": {"password": "pa55-word-of-keystone"}}}


class Program:
    """A program that records how it was called."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.path = folder / "helm"
        self.path.write_text(RECORDER)
        self.path.chmod(0o755)
        self.ends(0)
        self.reports("v4.3.1\n")
        self.home = folder / "home"
        env = {"PATH": "/opt/venv/bin:/usr/bin:/bin", "OS_PASSWORD": "never-passed-on"}
        self.helm = command.Command(str(self.path), self.home, "/kube/config", env)

    def ends(self, code: int, output: str = "", error: str = "") -> None:
        for name, text in (("code", str(code)), ("output", output), ("error", error)):
            (self.folder / name).write_text(text)

    def reports(self, version: str) -> None:
        (self.folder / "version").write_text(version)

    def record(self) -> dict[str, object]:
        read: dict[str, object] = json.loads((self.folder / "record").read_text())
        return read


@pytest.fixture()
def program(tmp_path: pathlib.Path) -> Program:
    return Program(tmp_path)


def upgrade(secrets: frozenset[str] = frozenset()) -> model.Upgrade:
    return model.Upgrade(
        release="openstack-keystone",
        namespace="openstack",
        chart=pathlib.Path("/cache/abc.tgz"),
        values=VALUES,
        labels={"lcm.mirantis.com/values-hash": "0a1b"},
        timeout_s=600,
        limit_s=30,
        secrets=secrets,
    )


def test_upgrade_passes_arguments_and_a_private_file(program: Program) -> None:
    program.helm.upgrade(upgrade(), threading.Event())
    record = program.record()
    arguments = record["arguments"]
    assert isinstance(arguments, list)
    assert arguments[:4] == [
        "upgrade",
        "openstack-keystone",
        "/cache/abc.tgz",
        "--install",
    ]
    text = " ".join(arguments)
    for part in (
        "--namespace openstack",
        "--history-max 3",
        "--timeout 600s",
        "--labels lcm.mirantis.com/values-hash=0a1b",
        "--kubeconfig /kube/config",
    ):
        assert part in text
    assert "--wait" not in text
    assert "rollback" not in text
    assert "pa55" not in text
    assert record["mode"] == "0o600"
    assert record["values"] == VALUES
    assert "OS_PASSWORD" not in record["env"]  # type: ignore[operator]
    assert not list(program.home.glob("values-*")), "the values are left on the disk"


def test_values_are_deleted_after_an_error_too(program: Program) -> None:
    program.ends(1, error="Error: no")
    with pytest.raises(errors.Failed):
        program.helm.upgrade(upgrade(), threading.Event())
    assert not list(program.home.glob("values-*"))
    assert stat.S_ISDIR(program.home.stat().st_mode)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in"
            " progress",
            errors.Busy,
        ),
        ("Error: Kubernetes cluster unreachable: dial tcp", errors.Unreachable),
        (
            "Error: execution error at (keystone/templates/x.yaml:3:4): image missing",
            errors.DoesNotRender,
        ),
        ('Error: ... secrets is forbidden: User "x" cannot', errors.Forbidden),
        ("Error: invalid ownership metadata; label", errors.NotOwned),
        (
            "Error: Job x is invalid: spec.template: field is immutable",
            errors.ImmutableField,
        ),
        (
            "Error: failed post-install: timed out waiting for the condition",
            errors.Failed,
        ),
    ],
)
def test_errors_have_classes(
    program: Program, text: str, kind: type[errors.HelmError]
) -> None:
    program.ends(1, error=f"WARNING: noise\n{text}\n")
    with pytest.raises(errors.HelmError) as caught:
        program.helm.upgrade(upgrade(), threading.Event())
    assert type(caught.value) is kind
    assert "noise" not in str(caught.value)


def test_secrets_are_removed_from_errors(program: Program) -> None:
    program.ends(1, error="Error: cannot parse pa55-word-of-keystone here")
    secrets = outcome.texts_in(VALUES)
    with pytest.raises(errors.Failed) as caught:
        program.helm.upgrade(upgrade(secrets), threading.Event())
    assert "pa55" not in str(caught.value)
    assert "[redacted]" in str(caught.value)


@pytest.mark.parametrize("output", ["v3.9.4", "nonsense", ""])
def test_an_old_helm_is_refused(program: Program, output: str) -> None:
    program.reports(output)
    with pytest.raises(errors.HelmMissing, match=r"must be 3\.18 or later"):
        program.helm.check(threading.Event())


def test_a_recent_helm_is_accepted(program: Program) -> None:
    assert program.helm.check(threading.Event()) == "v4.3.1"


@pytest.mark.parametrize(
    ("version", "flags"),
    [("v3.18.4", set()), ("v4.3.1", {"--server-side=true", "--force-conflicts"})],
)
def test_manual_changes_never_stop_an_upgrade(
    program: Program, version: str, flags: set[str]
) -> None:
    """helm 4 fails with a conflict without these flags; helm 3 overwrites."""
    program.reports(version)
    program.helm.upgrade(upgrade(), threading.Event())
    arguments = program.record()["arguments"]
    assert isinstance(arguments, list)
    assert {
        argument
        for argument in arguments
        if "server-side" in argument or "force" in argument
    } == flags


def test_a_missing_helm_is_named(tmp_path: pathlib.Path) -> None:
    helm = command.Command("/nowhere/helm", tmp_path, None, {})
    with pytest.raises(errors.HelmMissing, match="/nowhere/helm"):
        helm.check(threading.Event())


def test_a_template_is_returned(program: Program) -> None:
    program.ends(0, "kind: Secret\n")
    run = model.Template("r", "n", pathlib.Path("/c.tgz"), VALUES)
    assert program.helm.template(run, threading.Event()) == "kind: Secret\n"
    assert "pa55" not in " ".join(map(str, program.record()["arguments"]))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [
        ("v3.18.0", True),
        ("3.18.0+g1234", True),
        ("v3.18.1", False),
        ("v3.18", True),
        ("v3.17.9", True),
        ("v4.0.0", False),
    ],
)
def test_a_version_of_helm_that_is_known_to_be_broken_is_refused(
    program: Program, version: str, is_refused: bool
) -> None:
    program.reports(version)
    if not is_refused:
        assert program.helm.check(threading.Event()) == version
        return
    with pytest.raises(errors.HelmMissing, match=r"or later, not 3\.18\.0"):
        program.helm.check(threading.Event())


def test_values_that_a_killed_process_has_left_are_deleted(
    program: Program, tmp_path: pathlib.Path
) -> None:
    home = tmp_path / "left"
    home.mkdir()
    (home / "values-abc.json").write_text(json.dumps({"password": "pa55"}))
    (home / "repositories.json").write_text("{}")
    command.Command(str(program.path), home, None, {})
    assert [path.name for path in home.iterdir()] == ["repositories.json"]


@pytest.mark.parametrize(
    ("secret", "printed"),
    [
        ("pa55-word\n", "value: pa55-word, not a number"),
        ("line-one-of-it\nline-two-of-it", "x: line-two-of-it"),
        ('pa55"word\\x', 'invalid value "pa55\\"word\\\\x"'),
        ("pa55-word", "data: cGE1NS13b3Jk"),
    ],
)
def test_each_form_of_a_secret_is_removed(secret: str, printed: str) -> None:
    text = outcome.scrub(printed, [secret])
    print(text)
    assert "[redacted]" in text
    assert not any(part in text for part in ("word", "line", "cGE1"))
