"""zvirt-ccm starts with the reference's command line, or names what is wrong.

Prints case and message. A message names flag or variable, and what would be valid; it
has no secret.
"""

import ipaddress
import pathlib
import sys
from collections.abc import Mapping, Sequence

import pytest

from lib.ccm import flag_table, options
from lib.process import flags
from tests.lib.cloud.zvirt.engines import CA
from zvirt_ccm import main

ENV = {
    "ZVIRT_API_URL": "https://engine.example/ovirt-engine/api",
    "ZVIRT_USERNAME": "admin@internal",
    "ZVIRT_PASSWORD": "s3cret",
    "ZVIRT_INSECURE": "false",
    "ZVIRT_CA_BUNDLE": CA,
}
REFERENCE = (
    "--cloud-provider=zvirt",
    "--allow-untagged-cloud=true",
    "--configure-cloud-routes=false",
    "--controllers=cloud-node,cloud-node-lifecycle",
    "--v=4",
)
"""Arguments of the reference's Deployment."""
FILES = {
    "EMPTY": "",
    "UNKNOWN": "ovirt_url: https://e/\novirt_username: a@b\novirt_pasword: s3cret\n",
}
"""Contents of files that variables name."""
Case = tuple[Mapping[str, str], Sequence[str], str]
CASES: Mapping[str, Case] = {
    "no variable": (
        dict.fromkeys(ENV, ""),
        (),
        "ZVIRT_API_URL: not set: must be the URL of the engine, such as"
        " https://engine.example.com/ovirt-engine/api",
    ),
    "http": (
        {"ZVIRT_API_URL": "http://engine.example"},
        (),
        'ZVIRT_API_URL: invalid value "http://engine.example": must be the URL',
    ),
    "a user without profile": (
        {"ZVIRT_USERNAME": "admin"},
        (),
        'ZVIRT_USERNAME: invalid value "admin": must be a user with its profile',
    ),
    "no password": ({"ZVIRT_PASSWORD": ""}, (), "ZVIRT_PASSWORD: not set"),
    "a password in a file that does not exist": (
        {"ZVIRT_PASSWORD": "", "ZVIRT_PASSWORD_FILE": "/none"},
        (),
        "ZVIRT_PASSWORD_FILE: /none: no such file",
    ),
    "a CA that is none": ({"ZVIRT_CA_BUNDLE": "s3cret"}, (), "ZVIRT_CA_BUNDLE: no"),
    "OVIRT_CONFIG is empty": (
        {"OVIRT_CONFIG": "EMPTY"},
        (),
        "OVIRT_CONFIG ovirt_url: not set: must be the URL of the engine",
    ),
    "OVIRT_CONFIG with an unknown key": (
        {"OVIRT_CONFIG": "UNKNOWN"},
        (),
        "OVIRT_CONFIG ovirt_pasword: unknown key: did you mean ovirt_password?",
    ),
    "OVIRT_CONFIG is no file": (
        {"OVIRT_CONFIG": "/none"},
        (),
        "OVIRT_CONFIG: /none: no such file",
    ),
    "devices": (
        {},
        ("--reported-devices=nic",),
        '--reported-devices: unsupported value "nic": must be one of nics, all',
    ),
    "networks": (
        {},
        ("--address-networks=10.0.0.0/8,10.0.0.1/8",),
        '--address-networks: invalid value "10.0.0.0/8,10.0.0.1/8": must be'
        " comma-separated CIDRs such as 10.0.0.0/8",
    ),
    "another provider": (
        {},
        ("--cloud-provider=dvp",),
        '--cloud-provider: invalid value "dvp": must be zvirt',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_start_ends_with_one_message(
    case: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The kubeconfig of the cluster itself is missing, so that none starts at all."""
    changed, words, expected = CASES[case]
    for name, value in {**ENV, **changed}.items():
        file = tmp_path / f"{value}.yaml"
        if value in FILES:
            file.write_text(FILES[value])
        monkeypatch.setenv(name, str(file) if value in FILES else value)
    kubeconfig = f"--kubeconfig={tmp_path / 'none'}"
    monkeypatch.setattr(sys, "argv", ["zvirt-ccm", *REFERENCE, kubeconfig, *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    lines = [line for line in shown.splitlines() if expected in line]
    print(f"{case:42} {lines}")
    assert len(lines) == 1, shown
    assert lines[0].startswith("zvirt-ccm: ")
    assert "s3cret" not in shown
    assert "Traceback" not in shown


def test_the_arguments_of_the_reference_are_accepted() -> None:
    parsed = flags.parse(main.FLAGS, REFERENCE)
    assert options.judge(parsed, main.PROVIDER) == ()
    settings = options.read(parsed, main.PROVIDER)
    assert options.SERVICE not in settings.controllers


def test_networks_are_joined() -> None:
    words = [*REFERENCE, "--address-networks=10.0.0.0/8, fd00::/8"]
    parsed = flags.parse(main.FLAGS, [*words, "--address-networks=192.168.0.0/16"])
    assert parsed[main.ADDRESS_NETWORKS] == tuple(
        map(ipaddress.ip_network, ("10.0.0.0/8", "fd00::/8", "192.168.0.0/16"))
    )


def test_flags_without_a_meaning_in_an_engine_say_why() -> None:
    reasons = {flag.name: flag.no_effect for flag in main.FLAGS}
    shared = {flag.name: flag.no_effect for flag in options.FLAGS}
    changed = {name: reasons[name] for name in shared if reasons[name] != shared[name]}
    print(changed)
    assert all(changed.values())
    assert flag_table.CLOUD_CONFIG.name in changed


def test_the_lease_is_that_of_this_cloud() -> None:
    (lease,) = (f for f in main.FLAGS if f.name == flag_table.LEASE_NAME.name)
    assert lease.default == "zvirt-cloud-controller-manager"
