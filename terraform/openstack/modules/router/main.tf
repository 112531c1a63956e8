variable "name" {
  description = "Name of the router."
  type        = string
}

variable "external_network_id" {
  description = "ID of the external network."
  type        = string
}

variable "subnet_id" {
  description = "ID of the subnet whose gateway the router is."
  type        = string
}

variable "owner" {
  description = "Description of each object: it has the ownership tag from its creation on, also where OpenTofu is ended before it sets tags."
  type        = string
}

variable "tags" {
  description = "Tags."
  type        = list(string)
}

resource "openstack_networking_router_v2" "router" {
  name                = var.name
  description         = var.owner
  admin_state_up      = true
  external_network_id = var.external_network_id
  tags                = var.tags
}

resource "openstack_networking_router_interface_v2" "router" {
  router_id = openstack_networking_router_v2.router.id
  subnet_id = var.subnet_id
}

output "interface_id" {
  description = "ID of the interface: floating IPs need it first."
  value       = openstack_networking_router_interface_v2.router.id
}
