variable "nodeGroupName" {
  description = "Name of the node group in nodeGroups of the configuration."
  type        = string

  validation {
    condition     = contains([for group in try(var.providerClusterConfiguration.nodeGroups, []) : group.name], var.nodeGroupName)
    error_message = "nodeGroupName is ${jsonencode(var.nodeGroupName)}: the configuration has ${jsonencode([for group in try(var.providerClusterConfiguration.nodeGroups, []) : group.name])}."
  }

  validation {
    condition     = try(length("${var.clusterConfiguration.cloud.prefix}-${var.nodeGroupName}-${var.nodeIndex}") <= 63, true)
    error_message = "${try(jsonencode("${var.clusterConfiguration.cloud.prefix}-${var.nodeGroupName}-${var.nodeIndex}"), "")} is no host name, as it is longer than 63 characters: shorten the prefix or the group's name."
  }
}
