"""Cinder's own fake driver, with the back end's name taken from the configuration.

The original calls every back end "fake", so that a volume type can't choose between
two of them.
"""

from cinder.tests import fake_driver


class LabVolumeDriver(fake_driver.FakeLoggingVolumeDriver):
    """See the module."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.backend_name = self.configuration.safe_get("volume_backend_name")

    def _update_volume_stats(self):
        super()._update_volume_stats()
        for pool in self._stats["pools"]:
            pool.update(
                reserved_percentage=0, multiattach=True, thin_provisioning_support=True
            )

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Say that the image was cloned: no download, no qemu-img, no privsep."""
        del context, volume, image_location, image_meta, image_service
        return {}, True
