# A node of a group, with a port in each of its networks.

variable "group" {
  description = "The node group of the configuration."
  type        = any
}

variable "node_index" {
  description = "Number of the node in its group."
  type        = number
}

variable "prefix" {
  description = "Beginning of every name, and name of the key pair."
  type        = string
}

variable "zones" {
  description = "The zones that the configuration permits; null: all of the cloud."
  type        = list(string)
}

variable "security_groups" {
  description = "Names of groups of each node."
  type        = list(string)
}

variable "internal_network" {
  description = "Name of the network that pods use."
  type        = string
}

variable "pod_cidrs" {
  description = "Networks that its port may also send from."
  type        = list(string)
}

variable "floating_ip" {
  description = "An existing floating IP for the first pool, or empty."
  type        = string
  default     = ""
}

variable "user_data" {
  description = "User data in base64, or empty."
  type        = string
}

variable "owner" {
  description = "Description of ports and floating IPs, with the ownership tag."
  type        = string
}

variable "tags" {
  description = "Tags of ports and floating IPs."
  type        = list(string)
}

variable "metadata" {
  description = "Metadata of the server and its volume."
  type        = map(string)
}

variable "timeout" {
  description = "How long creating, changing or deleting may take."
  type        = string
}

locals {
  class         = var.group.instanceClass
  name          = "${var.prefix}-${var.group.name}-${var.node_index}"
  root_disk_gib = try(local.class.rootDiskSize, null)
  additional    = distinct(try(local.class.additionalNetworks, []))
  open_networks = try(local.class.networksWithSecurityDisabled, [])
  group_names   = distinct(concat(var.security_groups, try(local.class.additionalSecurityGroups, [])))
  pools         = distinct(try(local.class.floatingIPPools, []))
  metadata      = merge(var.metadata, try(local.class.additionalTags, {}))
  # One zone for the server and its volume.
  permitted = try(var.group.zones, null) == null ? var.zones : var.zones == null ? var.group.zones : [for zone in var.group.zones : zone if contains(coalesce(var.zones, []), zone)]
}

module "zones" {
  source = "../zones"

  allowed      = local.permitted
  volume_types = local.root_disk_gib == null ? null : var.group.volumeTypeMap
  index        = var.node_index
  field        = "nodeGroups[${var.group.name}].zones"
}

module "image" {
  source = "../image"

  image_name    = local.class.imageName
  flavor_name   = local.class.flavorName
  root_disk_gib = local.root_disk_gib
  field         = "nodeGroups[${var.group.name}].instanceClass"
}

data "openstack_networking_network_v2" "network" {
  for_each = toset(concat([local.class.mainNetwork], local.additional))

  name = each.key
}

module "groups" {
  source = "../security-groups"

  names = local.group_names
}

module "main_port" {
  source = "../port"

  name               = local.name
  network_id         = data.openstack_networking_network_v2.network[local.class.mainNetwork].id
  is_secured         = !contains(local.open_networks, local.class.mainNetwork)
  security_group_ids = module.groups.ids
  pod_cidrs          = local.class.mainNetwork == var.internal_network ? var.pod_cidrs : []
  owner              = var.owner
  tags               = var.tags
}

module "additional_port" {
  source   = "../port"
  for_each = toset(local.additional)

  name               = local.name
  network_id         = data.openstack_networking_network_v2.network[each.key].id
  is_secured         = !contains(local.open_networks, each.key)
  security_group_ids = module.groups.ids
  pod_cidrs          = each.key == var.internal_network ? var.pod_cidrs : []
  owner              = var.owner
  tags               = var.tags
}

module "server" {
  source = "../server"

  name         = local.name
  flavor_name  = local.class.flavorName
  image_id     = module.image.image_id
  key_pair     = var.prefix
  zone         = module.zones.zone
  user_data    = var.user_data
  config_drive = try(local.class.configDrive, false)
  port_ids     = concat([module.main_port.id], [for name in local.additional : module.additional_port[name].id])
  metadata     = local.metadata
  timeout      = var.timeout
  root_volume = local.root_disk_gib == null ? null : {
    name        = local.name
    size_gib    = local.root_disk_gib
    volume_type = module.zones.volume_type
    zone        = module.zones.volume_zone
  }
}

module "floating_ip" {
  source   = "../floating-ip"
  for_each = toset(local.pools)

  pool     = each.key
  existing = each.key == try(local.pools[0], "") ? var.floating_ip : ""
  port_id  = module.main_port.id
  owner    = "${local.name} of ${var.owner}"
  tags     = var.tags
}
