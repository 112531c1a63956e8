# The zones that exist, are permitted and, where volumes need it, have a volume type.

variable "allowed" {
  description = "Zones to choose from; null: all."
  type        = list(string)
  default     = null
}

variable "volume_types" {
  description = "Volume type by zone; null: volumes play no part in the choice."
  type        = map(string)
  default     = null
}

variable "index" {
  description = "Number of the node: nodes are spread over the zones in turn."
  type        = number
  default     = 0
}

variable "field" {
  description = "Field that names the zones, for messages."
  type        = string
  default     = "providerClusterConfiguration.zones"
}

data "openstack_compute_availability_zones_v2" "compute" {
  lifecycle {
    postcondition {
      condition     = var.allowed == null || length(setsubtract(coalesce(var.allowed, []), self.names)) == 0
      error_message = "${var.field} has zones that Nova does not have: ${join(", ", setsubtract(coalesce(var.allowed, []), self.names))}. It has ${join(", ", self.names)}."
    }

    postcondition {
      condition     = var.volume_types == null || length(setintersection(keys(coalesce(var.volume_types, {})), var.allowed == null ? self.names : setintersection(self.names, coalesce(var.allowed, [])))) > 0
      error_message = "volumeTypeMap has no zone to use: it has ${join(", ", keys(coalesce(var.volume_types, {})))}, Nova has ${join(", ", self.names)}, permitted are ${join(", ", coalesce(var.allowed, ["all"]))}."
    }
  }
}

data "openstack_blockstorage_availability_zones_v3" "volume" {}

locals {
  permitted = var.allowed == null ? toset(data.openstack_compute_availability_zones_v2.compute.names) : setintersection(data.openstack_compute_availability_zones_v2.compute.names, coalesce(var.allowed, []))
  usable    = sort(var.volume_types == null ? local.permitted : setintersection(local.permitted, keys(coalesce(var.volume_types, {}))))
  chosen    = local.usable[var.index % length(local.usable)]
}

output "names" {
  description = "The usable zones, sorted."
  value       = local.usable
}

output "zone" {
  description = "The node's zone."
  value       = local.chosen
}

output "volume_zone" {
  description = "The zone of its volumes; null: Cinder has no zone of that name and chooses."
  value       = contains(data.openstack_blockstorage_availability_zones_v3.volume.names, local.chosen) ? local.chosen : null
}

output "volume_type" {
  description = "The volume type of that zone; null: the cloud's default."
  value       = var.volume_types == null ? null : coalesce(var.volume_types, {})[local.chosen]
}
