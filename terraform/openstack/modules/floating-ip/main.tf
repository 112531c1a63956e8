# A floating IP of a port: a new one of a pool, or an existing one, which is kept.

variable "pool" {
  description = "Name of the external network of a new address."
  type        = string
}

variable "existing" {
  description = "An existing address, or empty."
  type        = string
  default     = ""
}

variable "port_id" {
  description = "ID of the port."
  type        = string
}

variable "owner" {
  description = "Description of each object: it has the ownership tag from its creation on, also where OpenTofu is ended before it sets tags."
  type        = string
}

variable "tags" {
  description = "Tags of a new address."
  type        = list(string)
}

resource "openstack_networking_floatingip_v2" "floating_ip" {
  count = var.existing == "" ? 1 : 0

  pool        = var.pool
  description = "${var.owner}, pool ${var.pool}"
  tags        = var.tags
}

resource "openstack_networking_floatingip_associate_v2" "floating_ip" {
  floating_ip = var.existing == "" ? openstack_networking_floatingip_v2.floating_ip[0].address : var.existing
  port_id     = var.port_id
}

output "address" {
  description = "The address."
  value       = openstack_networking_floatingip_associate_v2.floating_ip.floating_ip
}
