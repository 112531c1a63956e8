# The nodes' own network and its subnet.

variable "name" {
  description = "Name of the network and of its subnet."
  type        = string
}

variable "cidr" {
  description = "Addresses of the subnet."
  type        = string
}

variable "dns_servers" {
  description = "Name servers of the subnet."
  type        = list(string)
  default     = []
}

variable "has_gateway" {
  description = "Whether the first address is the gateway's."
  type        = bool
}

variable "is_secured" {
  description = "Whether ports have port security."
  type        = bool
}

variable "owner" {
  description = "Description of each object: it has the ownership tag from its creation on, also where OpenTofu is ended before it sets tags."
  type        = string
}

variable "tags" {
  description = "Tags; the first is the ownership tag."
  type        = list(string)
}

variable "adopt_untagged" {
  description = "Whether a subnet of that name without an ownership tag is this cluster's."
  type        = bool
  default     = false
}

data "openstack_networking_subnet_ids_v2" "tagged" {
  name = var.name
  tags = [var.tags[0]]
}

# OpenTofu was ended before it set the tags.
data "openstack_networking_subnet_ids_v2" "described" {
  name        = var.name
  description = var.owner
}

locals {
  owned = concat(data.openstack_networking_subnet_ids_v2.tagged.ids, data.openstack_networking_subnet_ids_v2.described.ids)
}

# A second network of one name makes every later lookup by name ambiguous.
data "openstack_networking_subnet_ids_v2" "named" {
  name = var.name

  lifecycle {
    postcondition {
      condition     = var.adopt_untagged && length(self.ids) <= 1 || length(setsubtract(self.ids, local.owned)) == 0
      error_message = "clusterConfiguration.cloud.prefix is ${jsonencode(var.name)}, which is in use: subnets ${join(", ", setsubtract(self.ids, local.owned))} have that name and not the tag ${var.tags[0]}. Choose another prefix; if the subnet is in this step's state, set adoptUntagged = true for one apply."
    }
  }
}

resource "openstack_networking_network_v2" "internal" {
  name                  = var.name
  description           = var.owner
  admin_state_up        = true
  port_security_enabled = var.is_secured
  tags                  = var.tags

  depends_on = [data.openstack_networking_subnet_ids_v2.named]
}

resource "openstack_networking_subnet_v2" "internal" {
  name            = var.name
  description     = var.owner
  network_id      = openstack_networking_network_v2.internal.id
  cidr            = var.cidr
  ip_version      = 4
  enable_dhcp     = true
  gateway_ip      = var.has_gateway ? cidrhost(var.cidr, 1) : null
  no_gateway      = var.has_gateway ? null : true
  dns_nameservers = var.dns_servers
  tags            = var.tags

  # From host 2 to the last address before the broadcast address.
  allocation_pool {
    start = cidrhost(var.cidr, 2)
    end   = cidrhost(var.cidr, -2)
  }
}

output "name" {
  description = "Name of the network."
  value       = openstack_networking_network_v2.internal.name
}

output "network_id" {
  description = "ID of the network."
  value       = openstack_networking_network_v2.internal.id
}

output "subnet_id" {
  description = "ID of the subnet."
  value       = openstack_networking_subnet_v2.internal.id
}
