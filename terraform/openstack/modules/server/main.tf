# A server, and the volume that it boots from. What applies at creation only is ignored
# afterwards: a changed zone, image, volume type or server group must not replace a node.

variable "name" {
  description = "Name of the server."
  type        = string
}

variable "flavor_name" {
  description = "Name of the flavor; a change is a resize."
  type        = string
}

variable "image_id" {
  description = "ID of the image."
  type        = string
}

variable "key_pair" {
  description = "Name of the key pair."
  type        = string
}

variable "zone" {
  description = "Availability zone of the server; null: Nova chooses."
  type        = string
}

variable "user_data" {
  description = "User data in base64, or empty."
  type        = string
  default     = ""
}

variable "config_drive" {
  description = "Whether the server has a config drive."
  type        = bool
  default     = false
}

variable "port_ids" {
  description = "IDs of its ports, in order; empty: `network_name` is used."
  type        = list(string)
  default     = []
}

variable "network_name" {
  description = "Name of the network of a server without ports of ours; null: none."
  type        = string
  default     = null
}

variable "security_groups" {
  description = "Names of groups, for a server without ports of ours."
  type        = list(string)
  default     = []
}

variable "server_group_id" {
  description = "ID of a server group; null: none."
  type        = string
  default     = null
}

variable "root_volume" {
  description = "The volume to boot from; null: the flavor's disk."
  type = object({
    name        = string
    size_gib    = number
    volume_type = string
    zone        = string
  })
  default = null
}

variable "metadata" {
  description = "Metadata of the server and its volume."
  type        = map(string)
}

variable "timeout" {
  description = "How long creating, changing or deleting may take."
  type        = string
}

resource "openstack_blockstorage_volume_v3" "root" {
  count = var.root_volume == null ? 0 : 1

  name                 = var.root_volume.name
  size                 = var.root_volume.size_gib
  image_id             = var.image_id
  volume_type          = var.root_volume.volume_type
  availability_zone    = var.root_volume.zone
  enable_online_resize = true
  metadata             = var.metadata

  timeouts {
    create = var.timeout
    delete = var.timeout
  }

  lifecycle {
    ignore_changes = [image_id, volume_type, availability_zone]
  }
}

resource "openstack_compute_instance_v2" "server" {
  name              = var.name
  flavor_name       = var.flavor_name
  key_pair          = var.key_pair
  availability_zone = var.zone
  config_drive      = var.config_drive ? true : null
  user_data         = var.user_data == "" ? null : var.user_data
  security_groups   = length(var.security_groups) > 0 ? var.security_groups : null
  metadata          = var.metadata

  # Never beside a boot volume: it would be a difference in every plan, and a rebuild.
  image_id = var.root_volume == null ? var.image_id : null

  dynamic "network" {
    for_each = var.port_ids
    content {
      port = network.value
    }
  }

  dynamic "network" {
    for_each = var.network_name == null ? [] : [var.network_name]
    content {
      name = network.value
    }
  }

  # The volume is deleted with its own resource. With the server, after a failed start,
  # the next apply would create a server from a volume that is gone.
  dynamic "block_device" {
    for_each = openstack_blockstorage_volume_v3.root
    content {
      uuid                  = block_device.value.id
      source_type           = "volume"
      destination_type      = "volume"
      boot_index            = 0
      delete_on_termination = false
    }
  }

  dynamic "scheduler_hints" {
    for_each = var.server_group_id == null ? [] : [var.server_group_id]
    content {
      group = scheduler_hints.value
    }
  }

  timeouts {
    create = var.timeout
    update = var.timeout
    delete = var.timeout
  }

  lifecycle {
    ignore_changes = [
      availability_zone,
      # Servers of the reference have true; a change would replace them.
      block_device[0].delete_on_termination,
      config_drive,
      image_id,
      image_name,
      key_pair,
      scheduler_hints,
      user_data,
    ]
  }
}

output "id" {
  description = "ID of the server."
  value       = openstack_compute_instance_v2.server.id
}

output "address" {
  description = "Its first address."
  value       = openstack_compute_instance_v2.server.access_ip_v4
}
