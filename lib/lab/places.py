"""Where one lab keeps its things, and which ports it uses."""

import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence

PORT_BASE = 20000
"""Of the lab a user starts; kept below 32768, where outgoing connections may sit."""

CLOUD_PORTS = 8
"""Number of ports of a lab that belong to its cloud, for its programs."""

_OFFSETS = (
    "apiserver",
    "etcd",
    "etcd-peer",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubelet-health",
    "cloud-controller-manager",
    *(f"cloud-{number}" for number in range(1, CLOUD_PORTS + 1)),
    "reference",
    "osdpl-controller",
    "chart-repository",
    "chart-registry",
    "osdpl-webhook",
    "cloud-data-discoverer",
    "cloud-data-discoverer-secure",
    "metadata",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    """Folders and ports of one lab.

    cache: programs and packages, shared by all labs and kept between runs.
    state: this lab's data, certificates, configuration, logs and pid files.
    port_base: first of the lab's block of ports, all on 127.0.0.1.
    """

    cache: pathlib.Path
    state: pathlib.Path
    port_base: int = PORT_BASE

    @property
    def run(self) -> pathlib.Path:
        """Pid files."""
        return self.state / "run"

    @property
    def log(self) -> pathlib.Path:
        """One log file per program."""
        return self.state / "log"

    def port(self, program: str) -> int:
        """Return the port of `program`; KeyError for one without a port."""
        return self.port_base + dict(zip(_OFFSETS, range(100), strict=False))[program]

    def ports(self) -> Mapping[str, int]:
        """Return every port by program."""
        return {name: self.port_base + n for n, name in enumerate(_OFFSETS)}


def cloud_ports(programs: Sequence[str]) -> Mapping[str, str]:
    """Return the names of the cloud's ports by program; at most `CLOUD_PORTS`."""
    return {program: f"cloud-{number}" for number, program in enumerate(programs, 1)}


def default(env: Mapping[str, str] | None = None) -> Places:
    """Return the places of the lab a user starts.

    Source: XDG Base Directory Specification 0.8; MOORING_LAB_PORT_BASE is ours.
    """
    env = os.environ if env is None else env
    home = pathlib.Path(env.get("HOME", "/root"))
    cache = pathlib.Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    state = pathlib.Path(env.get("XDG_STATE_HOME") or home / ".local/state")
    base = int(env.get("MOORING_LAB_PORT_BASE", PORT_BASE))
    return Places(cache / "mooring", state / "mooring" / "lab", base)
