variable "name" {
  description = "Name of the external network."
  type        = string
}

variable "must_be_external" {
  description = "Whether routers and floating IPs need it."
  type        = bool
  default     = true
}

data "openstack_networking_network_v2" "external" {
  name = var.name

  lifecycle {
    postcondition {
      condition     = coalesce(self.external, true) || !var.must_be_external
      error_message = "externalNetworkName is ${jsonencode(var.name)}: network ${self.id} is not external, so routers and floating IPs cannot use it."
    }
  }
}

output "id" {
  description = "ID of the network."
  value       = data.openstack_networking_network_v2.external.id
}

output "name" {
  description = "Name of the network."
  value       = data.openstack_networking_network_v2.external.name
}
