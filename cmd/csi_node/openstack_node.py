"""A node of OpenStack: identity, serials and limits, without calls to the cloud."""

import functools
import pathlib
import re
import time
from collections.abc import Mapping, Sequence

from lib.cloud.openstack.config import reader, settings
from lib.cloud.openstack.instance_metadata import config_drive, server_identity, service
from lib.cloud.support import label_values
from lib.csi import node, node_driver, node_flags
from lib.kernel.model import Link
from lib.kernel.protocol import Kernel
from lib.process import config, flags, logs

DRIVER = "cinder.csi.openstack.org"
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"
_VOLUME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]")


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of the files of --cloud-config."""
    return config.collect(lambda: _configuration(values[node_flags.CLOUD_CONFIG]))


def program(
    name: str, version: str, values: flags.Values, kernel: Kernel
) -> node_driver.NodeDriverProgram:
    """Return the node plugin for OpenStack.

    Raises:
        ConfigError: a file of --cloud-config cannot be used.
    """
    configuration = _configuration(values[node_flags.CLOUD_CONFIG])
    if configuration.has_credentials:
        logs.get(__name__).warning(
            "configuration warning",
            reason="--cloud-config holds credentials, which a node does not need; they"
            " are not used",
        )
    server = Server(configuration, values, kernel)
    return node_driver.NodeDriverProgram(
        name,
        version,
        DRIVER,
        ZONE_KEY,
        serial,
        server.place,
        server.hints,
        configuration.attach_limit,
    )


def serial(volume_id: str, publish_context: Mapping[str, str]) -> str:
    """Return the serial of a disk: Nova sets it to the volume's id."""
    del publish_context
    return volume_id


def is_volume(serial: str) -> bool:
    """Report whether a disk's serial, which virtio cuts, is the id of a volume."""
    return _VOLUME.match(serial) is not None


class Server:
    """This server, as its metadata describes it."""

    def __init__(
        self, configuration: settings.NodeConfig, values: flags.Values, kernel: Kernel
    ) -> None:
        address = values[node_flags.METADATA_ADDRESS] or service.ADDRESS
        self._kernel = kernel
        sources: Mapping[str, server_identity.Source] = {
            "configDrive": self._config_drive,
            "metadataService": functools.partial(service.read, address, time.sleep),
        }
        named = [(source, sources[source]) for source in configuration.search_order]
        self._identity = server_identity.ServerIdentity(
            named, pathlib.Path(values[node_flags.SYS])
        )

    def _config_drive(self) -> bytes | None:
        """Read the config drive: the disk with its label first, then all others.

        Never a volume: what is on it was written by users of the cluster. A disk that
        does not answer may be one, and reading it would not end.
        """
        disks = [
            disk
            for disk in self._kernel.disks()
            if not disk.is_silent and not is_volume(disk.serial)
        ]
        links = self._kernel.links("by-label")
        labelled = {
            link.number for link in links if link.name.lower() == config_drive.LABEL
        }
        ordered = sorted(disks, key=lambda disk: disk.number not in labelled)
        return config_drive.find(disk.path for disk in ordered)

    def place(self, needs_zone: bool) -> node_driver.NodePlace:
        """Return id and zone, the latter as the Node's label has it.

        Raises:
            IdentityUnknown: no source names the server, or its zone where required.
        """
        try:
            server = self._identity.read()
        except server_identity.UnknownIdentity as error:
            raise node.IdentityUnknown(f"identity of the node: {error}") from error
        if needs_zone and not server.is_complete:
            text = "zone of the node: neither config drive nor metadata service has it"
            raise node.IdentityUnknown(text)
        return node_driver.NodePlace(server.id, label_values.label_value(server.zone))

    def hints(self, disk_serial: str) -> Sequence[Link]:
        """Return links of by-path to the disk that the metadata lists for a serial.

        Source: kubernetes/cloud-provider-openstack pkg/util/metadata
        (GetDevicePath): /dev/disk/by-path/*-<bus>-<address>.
        """
        try:
            disks = self._identity.read().disks
        except server_identity.UnknownIdentity:
            return ()
        endings = {
            f"-{disk.bus}-{disk.address}"
            for disk in disks
            if disk.serial == disk_serial and disk.bus and disk.address
        }
        links = self._kernel.links("by-path")
        return [link for link in links if link.name.endswith(tuple(endings))]


def _configuration(paths: Sequence[str]) -> settings.NodeConfig:
    text = "\n".join(config.read_text(path, "--cloud-config") for path in paths)
    try:
        return reader.read_node(text)
    except settings.CloudConfError as error:
        title = ", ".join(paths)
        problems = [f"{title}: {problem}" for problem in error.problems]
        raise config.ConfigError(problems) from error
