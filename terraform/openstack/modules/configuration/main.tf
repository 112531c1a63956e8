# What every step derives from its inputs; no resource, no data source.

variable "cluster" {
  description = "The ClusterConfiguration."
  type        = any
}

variable "document" {
  description = "The OpenStackClusterConfiguration."
  type        = any
}

variable "cluster_uuid" {
  description = "UUID of the cluster."
  type        = string
}

locals {
  blocks = {
    Standard                  = "standard"
    StandardWithNoRouter      = "standardWithNoRouter"
    Simple                    = "simple"
    SimpleWithInternalNetwork = "simpleWithInternalNetwork"
  }
  block      = var.document[local.blocks[var.document.layout]]
  is_secured = try(local.block.internalNetworkSecurity, true)
  modes = {
    Standard                  = local.is_secured ? "DirectRoutingWithPortSecurityEnabled" : "DirectRouting"
    StandardWithNoRouter      = local.is_secured ? "DirectRoutingWithPortSecurityEnabled" : "DirectRouting"
    Simple                    = try(local.block.podNetworkMode, "VXLAN")
    SimpleWithInternalNetwork = try(local.block.podNetworkMode, "DirectRoutingWithPortSecurityEnabled")
  }
  mode = local.modes[var.document.layout]
  tags = { for name, text in try(var.document.tags, {}) : name => tostring(text) }
  key  = "cluster-uuid"
}

output "prefix" {
  description = "Beginning of every name."
  value       = var.cluster.cloud.prefix
}

output "layout" {
  description = "The layout's name in documents."
  value       = var.document.layout
}

output "block" {
  description = "The settings of the layout."
  value       = local.block
}

output "is_secured" {
  description = "Whether the layout's own network has port security and a group."
  value       = local.is_secured
}

output "pod_network_mode" {
  description = "podNetworkMode of the discovery data."
  value       = local.mode
}

output "pod_cidrs" {
  description = "Networks that a node's port may also send from: that of pods, where port security would drop it."
  value       = local.mode == "DirectRoutingWithPortSecurityEnabled" ? [var.cluster.podSubnetCIDR] : []
}

output "config_drive" {
  description = "Whether masters need a config drive: their network has no DHCP."
  value       = !try(local.block.externalNetworkDHCP, true)
}

output "zones" {
  description = "The zones that the configuration permits; null: all of the cloud."
  value       = try(var.document.zones, null)
}

output "cluster_tag" {
  description = "The tag of objects of this cluster."
  value       = "${local.key}=${var.cluster_uuid}"
}

output "owner" {
  description = "Description of objects of this cluster, which is set at creation; tags follow in a second request."
  value       = "Kubernetes cluster ${var.cluster.cloud.prefix}, ${local.key}=${var.cluster_uuid}"
}

output "tags" {
  description = "Tags of objects of Neutron, of which the first is the ownership tag."
  value       = concat(["${local.key}=${var.cluster_uuid}"], [for name, text in local.tags : "${name}=${text}"])
}

output "metadata" {
  description = "Metadata of servers and volumes."
  value       = merge(local.tags, { (local.key) = var.cluster_uuid })
}
