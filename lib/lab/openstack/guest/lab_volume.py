"""Cinder's own fake driver, with back ends of their own names and files for volumes.

The original calls every back end "fake", so that a volume type can't choose between
two of them, and its volumes hold nothing.
"""

import lab_disks
from cinder.tests import fake_driver
from oslo_config import cfg


class LabVolumeDriver(fake_driver.FakeLoggingVolumeDriver):
    """See the module."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.backend_name = self.configuration.safe_get("volume_backend_name")
        self._disks = lab_disks.Disks(cfg.CONF.state_path)

    def _update_volume_stats(self):
        super()._update_volume_stats()
        for pool in self._stats["pools"]:
            pool.update(
                reserved_percentage=0, multiattach=True, thin_provisioning_support=True
            )

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Report that the image was cloned: no download, no qemu-img, no privsep."""
        del context, volume, image_location, image_meta, image_service
        return {}, True

    def initialize_connection(self, volume, connector):
        """Provide the volume's file: it is about to be attached."""
        self._disks.provide(str(volume["id"]), int(volume["size"]))
        return super().initialize_connection(volume, connector)

    def create_cloned_volume(self, volume, src_vref):
        """Copy the source's data."""
        new, source = str(volume["id"]), str(src_vref["id"])
        self._disks.copy(source, new, int(volume["size"]))

    def extend_volume(self, volume, new_size):
        """Extend the volume's file."""
        self._disks.extend(str(volume["id"]), int(new_size))

    def delete_volume(self, volume):
        """Delete the volume's file."""
        self._disks.delete(str(volume["id"]))
