"""Any cloud.conf is read, or refused with problems; nothing else is raised.

MOORING_FUZZ multiplies the number of files; 50 gives 50,000.
"""

import os
import random

import pytest

from lib.cloud.openstack.config import reader as config
from lib.cloud.openstack.config import settings

FILES = 1_000 * int(os.environ.get("MOORING_FUZZ", "1"))
VALID = """
[Global]
auth-url = https://keystone.example/v3
username = robot
password = hunter2
domain-name = Default
tenant-name = fleet
[Networking]
address-sort-order = 10.0.0.0/8, fd00::/8
[Metadata]
search-order = configDrive
request-timeout = 5s
[LoadBalancer]
monitor-delay = 5s
max-shared-lb = 3
member-cidr = 10.0.0.0/8
floating-subnet = "~pub.*"
[LoadBalancerClass "gold"]
floating-network-id = x
[BlockStorage]
availability-zone-map = a:b
node-volume-attach-limit = 25
"""
PASSWORD = "\npassword = hunter2\n"
ATOMS = (
    *("[", "]", '"', "\\", "=", ";", "#", "\n", "\t", "\0", "\x1b", "\ufeff", "\u202e"),
    *(
        "[Global]",
        "[LoadBalancerClass]",
        '[x "',
        "true",
        "-1",
        "9" * 400,
        "1e999",
        "5h",
    ),
    *("NaN", "10.0.0.0/33", "::", ",", ":", "use-clouds = true", "0x", "\U0010ffff"),
)


def mutated(text: str, chance: random.Random) -> str:
    """Return a file with a few parts replaced, doubled or deleted."""
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice((0, 0, 1, 5, 40)))
        part = chance.choice((*ATOMS, text[at:end] * 2, ""))
        text = text[:at] + part + text[end:]
    return text


def test_any_file_is_read_or_refused() -> None:
    """Problems never repeat the password."""
    chance = random.Random(14)  # noqa: S311 # inputs that repeat
    refused = 0
    for _ in range(FILES):
        text = mutated(VALID, chance)
        problems = problems_of(text)
        refused += problems is not None
        if problems is not None and "\\" not in text and PASSWORD in text:
            assert "hunter2" not in problems, text
    print(f"{refused} of {FILES} files refused")
    assert 0 < refused < FILES


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            VALID.replace("https://keystone.example/v3\nusername = robot\n", "v3"),
            "hunter2",
            id="a line that runs into the password",
        ),
        pytest.param(
            VALID.replace("https://", "ftp://robot:hunter2@"),
            "hunter2",
            id="a URL with user information",
        ),
        pytest.param(
            VALID.replace("5s\nmax-shared", "5s token = abc\nmax-shared"),
            "abc",
            id="a line that runs into a token",
        ),
    ],
)
def test_no_message_shows_a_secret_in_the_value_of_another_key(
    text: str, shown: str
) -> None:
    problems = problems_of(text)
    assert problems is not None
    assert "invalid value [redacted]" in problems
    assert shown not in problems


def test_a_message_shows_a_value_without_a_secret() -> None:
    problems = problems_of(VALID.replace("https://", "ftp://"))
    assert problems is not None
    assert '"ftp://keystone.example/v3"' in problems


def problems_of(text: str) -> str | None:
    """Return why a file is refused; None: it is read."""
    try:
        config.read(text, {}, lambda path: None)
    except settings.CloudConfError as error:
        return "; ".join(error.problems) or "nothing"
    return None
