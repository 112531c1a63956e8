"""Reads fields of a machine's spec, with quantities of Kubernetes. Pure."""

from lib.cloud.dvp import quantity_bytes
from lib.cloud.support import spec_fields


class SpecReader(spec_fields.SpecFields):
    """The spec of one machine."""

    def quantity(self, field: str, default: str = "") -> str:
        """Return a quantity above 0, as text."""
        value = self.at(field)
        if value is None and default:
            return default
        is_quantity = isinstance(value, str | int) and not isinstance(value, bool)
        if is_quantity and quantity_bytes.size_bytes(str(value)) > 0:
            return str(value)
        self.reject(field, value, "a quantity above 0, such as 8Gi")
        return default
