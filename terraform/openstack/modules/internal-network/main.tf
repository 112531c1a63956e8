# Finds the network of the base infrastructure by name, and by the ownership tag when
# several have that name. The reference's networks have none.

variable "name" {
  description = "Name of the subnet."
  type        = string
}

variable "tag" {
  description = "Tag of the cluster's objects; empty: any subnet of that name."
  type        = string
  default     = ""
}

variable "field" {
  description = "Field that names the subnet, for messages."
  type        = string
  default     = "clusterConfiguration.cloud.prefix"
}

data "openstack_networking_subnet_ids_v2" "tagged" {
  count = var.tag == "" ? 0 : 1

  name = var.name
  tags = [var.tag]
}

data "openstack_networking_subnet_ids_v2" "named" {
  name = var.name

  lifecycle {
    postcondition {
      condition     = length(local.tagged) == 1 || length(local.tagged) == 0 && length(self.ids) == 1
      error_message = "${var.field} is ${jsonencode(var.name)}: ${length(self.ids) == 0 ? "there is no subnet of that name; apply base-infrastructure first" : "subnets ${join(", ", self.ids)} all have that name; rename or delete those that are not this cluster's"}."
    }
  }
}

locals {
  tagged    = flatten(data.openstack_networking_subnet_ids_v2.tagged[*].ids)
  subnet_id = length(local.tagged) == 1 ? local.tagged[0] : data.openstack_networking_subnet_ids_v2.named.ids[0]
}

data "openstack_networking_subnet_v2" "internal" {
  subnet_id = local.subnet_id
}

data "openstack_networking_network_v2" "internal" {
  network_id = data.openstack_networking_subnet_v2.internal.network_id
}

output "subnet_id" {
  description = "ID of the subnet."
  value       = local.subnet_id
}

output "network_id" {
  description = "ID of its network."
  value       = data.openstack_networking_network_v2.internal.id
}

output "network_name" {
  description = "Name of its network."
  value       = data.openstack_networking_network_v2.internal.name
}
