# IDs of existing groups; a name that several groups have fails.

variable "names" {
  description = "Names of the groups."
  type        = set(string)
}

variable "field" {
  description = "Field that names them, for messages."
  type        = string
  default     = "additionalSecurityGroups"
}

data "openstack_networking_secgroup_v2" "group" {
  for_each = var.names

  name = each.key
}

output "ids" {
  description = "IDs of the groups, sorted by the groups' names."
  value       = [for name in sort(var.names) : data.openstack_networking_secgroup_v2.group[name].id]
}
