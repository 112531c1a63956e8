"""DVP as csi-controller uses it: the project of this cluster in its parent."""

from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.volumes import cloud, disk_serial
from lib.csi import driver
from lib.daemon import counting, reopening

FEATURES = cloud.FEATURES
DRIVER = disk_serial.DRIVER


def read(kubeconfig: str, env: Mapping[str, str]) -> config.ParentConfig:
    """Read the configuration. kubeconfig: of --parent-kubeconfig; may be empty.

    Raises:
        ConfigError: it cannot be used; every problem is listed.
    """
    return config.read(kubeconfig, env)


def opener(settings: config.ParentConfig, user_agent: str) -> driver.Open:
    """Return the opener of the project; its watches begin with it."""

    def open_(metrics: counting.CloudMetrics) -> reopening.Opened:
        access = parent.connect(settings, user_agent, metrics.observe, metrics.circuit)
        opened = protocol.Cloud("dvp", volumes=cloud.DvpVolumes(access))
        # The client of the parent reads a changed kubeconfig itself.
        return reopening.Opened(opened, lambda: False)

    return open_
