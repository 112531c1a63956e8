variable "name" {
  description = "Name of the port."
  type        = string
}

variable "network_id" {
  description = "ID of its network."
  type        = string
}

variable "subnet_id" {
  description = "ID of the subnet of its address; null: Neutron chooses."
  type        = string
  default     = null
}

variable "is_secured" {
  description = "Whether it has security groups; without them Neutron's default group is omitted, too."
  type        = bool
  default     = true
}

variable "security_group_ids" {
  description = "IDs of its groups; empty: Neutron's default group."
  type        = list(string)
  default     = []
}

variable "pod_cidrs" {
  description = "Networks that it may send from besides its own address."
  type        = set(string)
  default     = []
}

variable "owner" {
  description = "Description of each object: it has the ownership tag from its creation on, also where OpenTofu is ended before it sets tags."
  type        = string
}

variable "tags" {
  description = "Tags."
  type        = list(string)
}

resource "openstack_networking_port_v2" "port" {
  name               = var.name
  description        = var.owner
  network_id         = var.network_id
  admin_state_up     = true
  no_security_groups = var.is_secured ? null : true
  security_group_ids = var.is_secured && length(var.security_group_ids) > 0 ? var.security_group_ids : null
  tags               = var.tags

  dynamic "fixed_ip" {
    for_each = var.subnet_id == null ? [] : [var.subnet_id]
    content {
      subnet_id = fixed_ip.value
    }
  }

  dynamic "allowed_address_pairs" {
    for_each = var.is_secured ? var.pod_cidrs : []
    content {
      ip_address = allowed_address_pairs.value
    }
  }

  # The state of an imported port lacks it: an update would give it another address.
  lifecycle {
    ignore_changes = [fixed_ip]
  }
}

output "id" {
  description = "ID of the port."
  value       = openstack_networking_port_v2.port.id
}

output "address" {
  description = "Its first address."
  value       = openstack_networking_port_v2.port.all_fixed_ips[0]
}
