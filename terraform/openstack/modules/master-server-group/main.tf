# The server group of the masters: that of the base infrastructure, or a given one.

variable "prefix" {
  description = "Name of the base infrastructure's group."
  type        = string
}

variable "server_group" {
  description = "serverGroup of masterNodeGroup; null: none."
  type        = any
}

locals {
  policy = try(var.server_group.policy, "")
}

data "openstack_compute_servergroup_v2" "masters" {
  count = local.policy == "AntiAffinity" ? 1 : 0

  name = var.prefix
}

output "id" {
  description = "ID of the group; null: none."
  value       = local.policy == "ManuallyManaged" ? var.server_group.manuallyManaged.id : one(data.openstack_compute_servergroup_v2.masters[*].id)
}
