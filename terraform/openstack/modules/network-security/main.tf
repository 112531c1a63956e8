# The security group of the nodes. Rules are keyed by what they permit: adding one changes
# no other.

variable "name" {
  description = "Name of the group."
  type        = string
}

variable "ssh_from" {
  description = "Networks that may use SSH; empty: none."
  type        = set(string)
}

variable "node_ports_udp" {
  description = "Whether node ports are open for UDP, too."
  type        = bool
  default     = false
}

variable "ipv6" {
  description = "Whether the rules exist for IPv6, too."
  type        = bool
  default     = false
}

variable "owner" {
  description = "Description of each object: it has the ownership tag from its creation on, also where OpenTofu is ended before it sets tags."
  type        = string
}

variable "tags" {
  description = "Tags of the group; rules have none."
  type        = list(string)
}

locals {
  anywhere  = merge({ IPv4 = "0.0.0.0/0" }, var.ipv6 ? { IPv6 = "::/0" } : {})
  icmp      = { IPv4 = "icmp", IPv6 = "ipv6-icmp" }
  protocols = var.node_ports_udp ? ["tcp", "udp"] : ["tcp"]
  node_ports = {
    for pair in setproduct(keys(local.anywhere), local.protocols) :
    "${pair[0]}-${pair[1]}" => { ethertype = pair[0], protocol = pair[1] }
  }
}

resource "openstack_networking_secgroup_v2" "kube" {
  name        = var.name
  description = var.owner
  tags        = var.tags
}

resource "openstack_networking_secgroup_rule_v2" "allow_ssh" {
  for_each = var.ssh_from

  security_group_id = openstack_networking_secgroup_v2.kube.id
  direction         = "ingress"
  ethertype         = strcontains(each.key, ":") ? "IPv6" : "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = each.key
}

resource "openstack_networking_secgroup_rule_v2" "allow_icmp" {
  for_each = local.anywhere

  security_group_id = openstack_networking_secgroup_v2.kube.id
  direction         = "ingress"
  ethertype         = each.key
  protocol          = local.icmp[each.key]
  remote_ip_prefix  = each.value
}

resource "openstack_networking_secgroup_rule_v2" "allow_node_ports" {
  for_each = local.node_ports

  security_group_id = openstack_networking_secgroup_v2.kube.id
  direction         = "ingress"
  ethertype         = each.value.ethertype
  protocol          = each.value.protocol
  port_range_min    = 30000
  port_range_max    = 32767
  remote_ip_prefix  = local.anywhere[each.value.ethertype]
}

resource "openstack_networking_secgroup_rule_v2" "allow_internal_communication" {
  for_each = local.anywhere

  security_group_id = openstack_networking_secgroup_v2.kube.id
  direction         = "ingress"
  ethertype         = each.key
  remote_group_id   = openstack_networking_secgroup_v2.kube.id
}

output "id" {
  description = "ID of the group."
  value       = openstack_networking_secgroup_v2.kube.id
}

output "name" {
  description = "Name of the group."
  value       = openstack_networking_secgroup_v2.kube.name
}

# Addresses of states that the reference wrote.
moved {
  from = openstack_networking_secgroup_rule_v2.allow_ssh[0]
  to   = openstack_networking_secgroup_rule_v2.allow_ssh["0.0.0.0/0"]
}

moved {
  from = openstack_networking_secgroup_rule_v2.allow_icmp[0]
  to   = openstack_networking_secgroup_rule_v2.allow_icmp["IPv4"]
}

moved {
  from = openstack_networking_secgroup_rule_v2.allow_node_ports[0]
  to   = openstack_networking_secgroup_rule_v2.allow_node_ports["IPv4-tcp"]
}

moved {
  from = openstack_networking_secgroup_rule_v2.allow_internal_communication[0]
  to   = openstack_networking_secgroup_rule_v2.allow_internal_communication["IPv4"]
}
