"""The node plugin: from its command line to its exit."""

import dataclasses
import pathlib
import posixpath
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import prometheus_client

from lib.csi import (
    identity_rpcs,
    identity_service,
    kubelet_registration,
    node,
    node_flags,
    node_service,
    options,
)
from lib.csi import server as csi_server
from lib.daemon import common_flags
from lib.kernel import errors
from lib.kernel.model import Disk, Link, Mount
from lib.kernel.protocol import Kernel
from lib.node_volumes import limits, observe, orphans
from lib.node_volumes.flow import NodeVolumesFlow
from lib.node_volumes.model import Action
from lib.process import (
    arenas,
    command_line,
    config,
    exchange,
    flags,
    logs,
    probes,
    shutdown,
    slis,
    standard_endpoints,
    start,
)
from lib.process import metrics as process_metrics

if TYPE_CHECKING:
    from lib.process import serving

GRACE_S = 5.0
"""Seconds for running calls to end once the process must exit."""
KUBELET = "/var/lib/kubelet"


@dataclasses.dataclass(frozen=True, slots=True)
class NodePlace:
    """Where this node is. zone: empty for a cloud without zones."""

    id: str
    zone: str


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceSlots:
    """Limit of the devices of a machine. takes: whether a disk takes a slot."""

    most: int
    takes: Callable[[Disk], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeDriverProgram:
    """Which plugin this is: all that differs between clouds.

    driver: the name in CSIDriver. zone_key: the topology segment; empty: none. serial:
    of a disk. place: raises IdentityUnknown; needs_zone: fail rather than report no
    zone. hints: further links of a serial. volumes_max: as configured, None: not set.
    slots: of machines with a limit of their own; None: the capacity of the bus.
    """

    name: str
    version: str
    driver: str
    zone_key: str
    serial: node.Serial
    place: Callable[[bool], NodePlace]
    hints: Callable[[str], Sequence[Link]] = observe.no_hints
    volumes_max: int | None = None
    slots: DeviceSlots | None = None


def judge(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    """Return every problem of the values."""
    problems: list[config.FieldProblem] = []
    endpoint = values[node_flags.ENDPOINT]
    if not options.is_endpoint(endpoint):
        expected = (
            "unix:///path/of/a/socket or tcp://host:port, with a port up to 65535"
        )
        problems.append(config.required("--endpoint", endpoint, expected))
    for path in values[node_flags.CLOUD_CONFIG]:
        if problem := config.unusable_file("--cloud-config", path):
            problems.append(problem)
    for flag in (node_flags.DEV, node_flags.SYS, node_flags.KUBELET_DIRECTORY):
        path = values[flag]
        if path and not (path.startswith("/") and pathlib.Path(path).is_dir()):
            expected = "the absolute path of an existing directory"
            problems.append(config.FieldProblem(f"--{flag.name}", path, expected))
    options.http_endpoint(values[node_flags.HTTP_ENDPOINT], problems)
    return tuple(problems)


def run(program: NodeDriverProgram, kernel: Kernel, values: flags.Values) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: the configuration cannot be used; nothing was started.
    """
    arenas.limit()
    build = process_metrics.Build(program.name, program.version)
    written = values[common_flags.LOGGING_FORMAT]
    settings = start.StartSettings(values[command_line.VERBOSITY], written, values)
    start.log_start(build, settings)
    registry = process_metrics.new_registry(build)
    stop = threading.Event()
    with shutdown.on_signal(stop):
        return NodePlugin(program, kernel, values, registry).run(stop)


def _real_path(kernel: Kernel, folder: str) -> str:
    """Return the path of a folder with all links resolved, its own included."""
    return posixpath.dirname(kernel.resolve(posixpath.join(folder, "any")))


class NodePlugin:
    """The running plugin."""

    def __init__(
        self,
        program: NodeDriverProgram,
        kernel: Kernel,
        values: flags.Values,
        registry: prometheus_client.CollectorRegistry,
    ) -> None:
        self._program = program
        self._kernel = kernel
        self._values = values
        self._registry = registry
        # Mounts have the real path of a folder that is a link, wherever the link is.
        configured = values[node_flags.KUBELET_DIRECTORY]
        self._root = _real_path(kernel, configured) if configured else ""
        self._kubelet = self._root or KUBELET
        self._orphans = prometheus_client.Gauge(
            "mooring_orphaned_mounts",
            "Mounts at start of disks that disappeared.",
            registry=registry,
        )
        self._log = logs.get(__name__)

    def run(self, stop: threading.Event) -> int:
        """Serve until stopped."""
        endpoint = self._values[node_flags.ENDPOINT]
        registering = self._registration(endpoint)
        rpcs = self._rpcs(endpoint)
        http = self._http()
        if http is not None:
            http.start()
        rpcs.start()
        self._log.info("serving", endpoint=endpoint)
        self.report_orphans()
        loop = threading.Thread(
            target=registering.run if registering else stop.wait,
            args=(stop,) if registering else (),
            name="registration",
        )
        loop.start()
        stop.wait()
        loop.join()
        rpcs.stop(GRACE_S)
        if http is not None:
            http.stop()
        return shutdown.Exit.OK

    def report_orphans(self) -> None:
        """Log and count mounts of disks that disappeared; they are not changed."""
        try:
            disks, mounts = self._kernel.disks(has_serials=False), self._mounts()
            orphaned = orphans.find(mounts, disks, self._kubelet, self._program.driver)
        except errors.KernelError as error:
            self._log.warning("cannot search orphaned mounts", err=str(error))
            return
        self._orphans.set(len(orphaned))
        for orphan in orphaned:
            self._log.warning(
                "orphaned mount", target=orphan.target, reason=orphan.problem
            )

    def info(self) -> node.NodeInfo:
        """Read the properties of the node that the kubelet publishes.

        Raises:
            IdentityUnknown: no source names the node, or its zone.
        """
        has_zones = self._values[node_flags.WITH_TOPOLOGY]
        place = self._program.place(has_zones)
        segments = dict(self._values[node_flags.ADDITIONAL_TOPOLOGY])
        if has_zones and place.zone and self._program.zone_key:
            segments[self._program.zone_key] = place.zone
        return node.NodeInfo(place.id, segments, self._volumes_max())

    def _volumes_max(self) -> int:
        fixed = self._values[node_flags.MAX_VOLUMES] or self._program.volumes_max
        if fixed:
            return fixed
        mounts, disks = self._mounts(), self._kernel.disks()
        own = limits.managed(mounts, self._kubelet, self._program.driver)
        slots = self._program.slots
        if slots is None:
            return limits.of_bus(disks, own)
        devices = [disk for disk in disks if slots.takes(disk) or disk.is_silent]
        own |= limits.published(mounts, self._kubelet)
        return limits.of_slots(slots.most, devices, own)

    def _mounts(self) -> tuple[Mount, ...]:
        mounts = self._kernel.mounts()
        return tuple(observe.with_disk(self._kernel, mount) for mount in mounts)

    def _rpcs(self, endpoint: str) -> csi_server.RpcServer:
        program = self._program
        has_zones = self._values[node_flags.WITH_TOPOLOGY] and bool(program.zone_key)
        description = identity_service.DriverDescription(
            program.driver, program.version, False, has_zones
        )
        settings = node.NodeServiceSettings(program.serial, self.info, self._root)
        flow = NodeVolumesFlow(self._kernel, program.hints, self._note)
        services = (
            identity_rpcs.rpcs(identity_service.IdentityService(description)),
            node_service.node(node.NodeService(flow, settings)),
        )
        counted = csi_server.RpcMetrics(program.driver, self._registry)
        return csi_server.RpcServer(endpoint, services, counted)

    def _note(self, volume_id: str, action: Action, seconds: float) -> None:
        self._log.info(
            "action completed",
            volume_id=volume_id,
            operation=type(action).__name__,
            detail=str(action),
            duration_s=round(seconds, 3),
        )

    def _registration(self, endpoint: str) -> kubelet_registration.Registration | None:
        socket = self._values[node_flags.REGISTRATION_SOCKET]
        if not socket:
            return None
        own = "/" + endpoint.partition("://")[2].strip("/")
        path = self._values[node_flags.REGISTRATION_PATH] or own
        return kubelet_registration.Registration(self._program.driver, path, socket)

    def _http(self) -> "serving.HttpServer | None":
        # It takes memory, and many nodes serve no HTTP.
        from lib.process import serving

        address = options.http_endpoint(self._values[node_flags.HTTP_ENDPOINT], [])
        listener = serving.listen(*address) if address is not None else None
        if listener is None:
            return None
        health = slis.Slis()
        checks = probes.Probes(health.observe)
        handlers: Mapping[str, exchange.Handler] = standard_endpoints.standard(
            checks, self._registry, health.registry
        )
        return serving.HttpServer(
            listener, None, exchange.HttpRoutes(handlers, exchange.everybody)
        )
