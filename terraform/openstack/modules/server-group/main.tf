variable "name" {
  description = "Name of the server group."
  type        = string
}

variable "is_soft" {
  description = "Whether other hosts are preferred, not required."
  type        = bool
  default     = false
}

resource "openstack_compute_servergroup_v2" "server_group" {
  name     = var.name
  policies = [var.is_soft ? "soft-anti-affinity" : "anti-affinity"]

  # Servers keep the group that they were created in.
  lifecycle {
    ignore_changes = [policies]
  }
}

output "id" {
  description = "ID of the server group."
  value       = openstack_compute_servergroup_v2.server_group.id
}
