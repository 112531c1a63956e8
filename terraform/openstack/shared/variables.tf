# Inputs of every step, as the installer writes them. Problems of the values are reported
# here: before the cloud is asked for anything.

variable "clusterConfiguration" {
  description = "The installer's ClusterConfiguration: cloud.prefix begins every name, podSubnetCIDR and serviceSubnetCIDR must not overlap the nodes' network."
  type        = any

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", var.clusterConfiguration.cloud.prefix))
    error_message = "clusterConfiguration.cloud.prefix is ${try(jsonencode(var.clusterConfiguration.cloud.prefix), "missing")}: it must consist of lower-case letters, digits and hyphens, and begin and end with a letter or digit."
  }

  validation {
    condition     = try(length(var.clusterConfiguration.cloud.prefix) <= 40, true)
    error_message = "clusterConfiguration.cloud.prefix is ${try(jsonencode(var.clusterConfiguration.cloud.prefix), "missing")}, which is ${try(length(var.clusterConfiguration.cloud.prefix), 0)} characters long: at most 40 leave room for the rest of a host name."
  }

  validation {
    condition     = can(cidrhost(var.clusterConfiguration.podSubnetCIDR, 0))
    error_message = "clusterConfiguration.podSubnetCIDR is ${try(jsonencode(var.clusterConfiguration.podSubnetCIDR), "missing")}: it must be a network, such as 10.111.0.0/16."
  }

  validation {
    condition     = try(var.clusterConfiguration.serviceSubnetCIDR, null) == null || can(cidrhost(var.clusterConfiguration.serviceSubnetCIDR, 0))
    error_message = "clusterConfiguration.serviceSubnetCIDR is ${try(jsonencode(var.clusterConfiguration.serviceSubnetCIDR), "missing")}: it must be a network, such as 10.222.0.0/16."
  }
}

variable "providerClusterConfiguration" {
  description = "The whole OpenStackClusterConfiguration; docs/layout-changes.md lists its fields."
  type        = any

  validation {
    condition     = try(var.providerClusterConfiguration.kind, "") == "OpenStackClusterConfiguration"
    error_message = "providerClusterConfiguration.kind is ${try(jsonencode(var.providerClusterConfiguration.kind), "missing")}: it must be OpenStackClusterConfiguration."
  }

  # object() drops unknown attributes without a word: names are compared instead.
  validation {
    condition     = length(setsubtract(keys(var.providerClusterConfiguration), ["apiVersion", "kind", "layout", "sshPublicKey", "sshAllowList", "tags", "zones", "provider", "masterNodeGroup", "nodeGroups", "standard", "standardWithNoRouter", "simple", "simpleWithInternalNetwork"])) == 0
    error_message = "providerClusterConfiguration has unknown fields: ${join(", ", setsubtract(keys(var.providerClusterConfiguration), ["apiVersion", "kind", "layout", "sshPublicKey", "sshAllowList", "tags", "zones", "provider", "masterNodeGroup", "nodeGroups", "standard", "standardWithNoRouter", "simple", "simpleWithInternalNetwork"]))}. Correct or remove them."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.providerClusterConfiguration.masterNodeGroup), []), ["replicas", "instanceClass", "volumeTypeMap", "serverGroup"])) == 0
    error_message = "providerClusterConfiguration.masterNodeGroup has unknown fields: ${join(", ", setsubtract(try(keys(var.providerClusterConfiguration.masterNodeGroup), []), ["replicas", "instanceClass", "volumeTypeMap", "serverGroup"]))}. Correct or remove them."
  }

  validation {
    condition     = length(setsubtract(try(keys(var.providerClusterConfiguration.masterNodeGroup.instanceClass), []), ["flavorName", "imageName", "rootDiskSize", "etcdDiskSizeGb", "systemRegistryDiskSizeGb", "additionalSecurityGroups", "additionalTags"])) == 0
    error_message = "providerClusterConfiguration.masterNodeGroup.instanceClass has unknown fields: ${join(", ", setsubtract(try(keys(var.providerClusterConfiguration.masterNodeGroup.instanceClass), []), ["flavorName", "imageName", "rootDiskSize", "etcdDiskSizeGb", "systemRegistryDiskSizeGb", "additionalSecurityGroups", "additionalTags"]))}. Correct or remove them."
  }

  validation {
    condition     = length(setsubtract(flatten([for name in ["standard", "standardWithNoRouter", "simple", "simpleWithInternalNetwork"] : try(keys(var.providerClusterConfiguration[name]), [])]), ["internalNetworkCIDR", "internalNetworkDNSServers", "externalNetworkName", "internalNetworkSecurity", "bastion", "externalNetworkDHCP", "podNetworkMode", "internalSubnetName", "masterWithExternalFloatingIP"])) == 0
    error_message = "the block of the layout in providerClusterConfiguration has unknown fields: ${join(", ", setsubtract(flatten([for name in ["standard", "standardWithNoRouter", "simple", "simpleWithInternalNetwork"] : try(keys(var.providerClusterConfiguration[name]), [])]), ["internalNetworkCIDR", "internalNetworkDNSServers", "externalNetworkName", "internalNetworkSecurity", "bastion", "externalNetworkDHCP", "podNetworkMode", "internalSubnetName", "masterWithExternalFloatingIP"]))}. Correct or remove them."
  }

  validation {
    condition     = length(setsubtract(flatten([for group in try(var.providerClusterConfiguration.nodeGroups, []) : concat(keys(group), [for name in keys(group.instanceClass) : "instanceClass.${name}"])]), ["name", "replicas", "instanceClass", "nodeTemplate", "zones", "volumeTypeMap", "instanceClass.flavorName", "instanceClass.imageName", "instanceClass.mainNetwork", "instanceClass.rootDiskSize", "instanceClass.additionalSecurityGroups", "instanceClass.additionalTags", "instanceClass.configDrive", "instanceClass.additionalNetworks", "instanceClass.networksWithSecurityDisabled", "instanceClass.floatingIPPools"])) == 0
    error_message = "providerClusterConfiguration.nodeGroups has unknown fields: ${join(", ", setsubtract(flatten([for group in try(var.providerClusterConfiguration.nodeGroups, []) : concat(keys(group), [for name in keys(group.instanceClass) : "instanceClass.${name}"])]), ["name", "replicas", "instanceClass", "nodeTemplate", "zones", "volumeTypeMap", "instanceClass.flavorName", "instanceClass.imageName", "instanceClass.mainNetwork", "instanceClass.rootDiskSize", "instanceClass.additionalSecurityGroups", "instanceClass.additionalTags", "instanceClass.configDrive", "instanceClass.additionalNetworks", "instanceClass.networksWithSecurityDisabled", "instanceClass.floatingIPPools"]))}. Correct or remove them."
  }

  validation {
    condition     = can(regex("^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)|sk-[a-z0-9-]+@openssh.com) [A-Za-z0-9+/]{32,}={0,3}( .*)?$", trimspace(var.providerClusterConfiguration.sshPublicKey)))
    error_message = "providerClusterConfiguration.sshPublicKey is ${try(jsonencode(substr(var.providerClusterConfiguration.sshPublicKey, 0, 40)), "missing")}: it must be a public SSH key, such as 'ssh-ed25519 AAAA...'."
  }

  validation {
    condition     = alltrue([for cidr in try(var.providerClusterConfiguration.sshAllowList, []) : can(cidrhost(cidr, 0)) && try("${cidrhost(cidr, 0)}/${split("/", cidr)[1]}" == cidr, false)])
    error_message = "providerClusterConfiguration.sshAllowList contains ${join(", ", [for cidr in try(var.providerClusterConfiguration.sshAllowList, []) : jsonencode(cidr) if !try("${cidrhost(cidr, 0)}/${split("/", cidr)[1]}" == cidr, false)])}: each entry must be a network without host bits, such as 192.0.2.0/24."
  }

  validation {
    condition     = alltrue([for name, text in try(var.providerClusterConfiguration.tags, {}) : length("${name}=${text}") <= 60 && !strcontains("${name}${text}", ",")])
    error_message = "providerClusterConfiguration.tags contains ${join(", ", [for name, text in try(var.providerClusterConfiguration.tags, {}) : jsonencode("${name}=${text}") if length("${name}=${text}") > 60 || strcontains("${name}${text}", ",")])}: a name and a value have 60 characters at most together with \"=\", and no comma."
  }

  validation {
    condition     = alltrue([for name in concat(keys(try(var.providerClusterConfiguration.tags, {})), keys(try(var.providerClusterConfiguration.masterNodeGroup.instanceClass.additionalTags, {}))) : can(regex("^[A-Za-z0-9 ._:-]{1,255}$", name))])
    error_message = "providerClusterConfiguration.tags or additionalTags contain ${join(", ", [for name in concat(keys(try(var.providerClusterConfiguration.tags, {})), keys(try(var.providerClusterConfiguration.masterNodeGroup.instanceClass.additionalTags, {}))) : jsonencode(name) if !can(regex("^[A-Za-z0-9 ._:-]{1,255}$", name))])}: Nova accepts names of letters, digits, spaces and ._:- only."
  }

  # A pool that follows from the mask, with DHCP, a router and three masters: /28 at least.
  validation {
    condition     = alltrue([for name in ["standard", "standardWithNoRouter"] : try(var.providerClusterConfiguration[name].internalNetworkCIDR, null) == null || try("${cidrhost(var.providerClusterConfiguration[name].internalNetworkCIDR, 0)}/${split("/", var.providerClusterConfiguration[name].internalNetworkCIDR)[1]}" == var.providerClusterConfiguration[name].internalNetworkCIDR && tonumber(split("/", var.providerClusterConfiguration[name].internalNetworkCIDR)[1]) <= 28, false)])
    error_message = "internalNetworkCIDR is ${join(", ", compact([for name in ["standard", "standardWithNoRouter"] : try(jsonencode(var.providerClusterConfiguration[name].internalNetworkCIDR), "")]))}: it must be an IPv4 network without host bits and with 16 addresses at least, such as 192.168.199.0/24."
  }

  # Two networks overlap when they are equal by the shorter of their masks.
  validation {
    condition = alltrue(flatten([
      for name in ["standard", "standardWithNoRouter"] : [
        for other in ["podSubnetCIDR", "serviceSubnetCIDR"] : try(
          cidrhost(format("%s/%d", split("/", var.providerClusterConfiguration[name].internalNetworkCIDR)[0], min(split("/", var.providerClusterConfiguration[name].internalNetworkCIDR)[1], split("/", var.clusterConfiguration[other])[1])), 0)
          != cidrhost(format("%s/%d", split("/", var.clusterConfiguration[other])[0], min(split("/", var.providerClusterConfiguration[name].internalNetworkCIDR)[1], split("/", var.clusterConfiguration[other])[1])), 0),
          true
        )
      ]
    ]))
    error_message = "internalNetworkCIDR ${join(", ", compact([for name in ["standard", "standardWithNoRouter"] : try(jsonencode(var.providerClusterConfiguration[name].internalNetworkCIDR), "")]))} overlaps podSubnetCIDR ${try(jsonencode(var.clusterConfiguration.podSubnetCIDR), "")} or serviceSubnetCIDR ${try(jsonencode(var.clusterConfiguration.serviceSubnetCIDR), "")}: choose a network of its own."
  }

  validation {
    condition     = alltrue([for address in try(var.providerClusterConfiguration.standard.internalNetworkDNSServers, []) : can(cidrhost("${address}/32", 0))])
    error_message = "standard.internalNetworkDNSServers contains ${join(", ", [for address in try(var.providerClusterConfiguration.standard.internalNetworkDNSServers, []) : jsonencode(address) if !can(cidrhost("${address}/32", 0))])}: each entry must be an IPv4 address, such as 192.0.2.53."
  }

  validation {
    condition     = try(var.providerClusterConfiguration.masterNodeGroup.serverGroup, null) == null || (try(var.providerClusterConfiguration.masterNodeGroup.serverGroup.policy, "") == "AntiAffinity" && try(var.providerClusterConfiguration.masterNodeGroup.serverGroup.manuallyManaged, null) == null) || (try(var.providerClusterConfiguration.masterNodeGroup.serverGroup.policy, "") == "ManuallyManaged" && try(var.providerClusterConfiguration.masterNodeGroup.serverGroup.manuallyManaged.id, "") != "")
    error_message = "masterNodeGroup.serverGroup is ${try(jsonencode(var.providerClusterConfiguration.masterNodeGroup.serverGroup), "")}: policy must be AntiAffinity, or ManuallyManaged with manuallyManaged.id."
  }

  validation {
    condition     = alltrue(flatten([for group in try(var.providerClusterConfiguration.nodeGroups, []) : [for name in try(group.instanceClass.networksWithSecurityDisabled, []) : contains(concat([group.instanceClass.mainNetwork], try(group.instanceClass.additionalNetworks, [])), name)]]))
    error_message = "nodeGroups: networksWithSecurityDisabled contains ${join(", ", flatten([for group in try(var.providerClusterConfiguration.nodeGroups, []) : [for name in try(group.instanceClass.networksWithSecurityDisabled, []) : jsonencode(name) if !contains(concat([group.instanceClass.mainNetwork], try(group.instanceClass.additionalNetworks, [])), name)]]))}: each must be the mainNetwork or one of the additionalNetworks of its group."
  }
}

variable "clusterUUID" {
  description = "UUID of the cluster: the ownership tag of its objects, and their metadata."
  type        = string

  validation {
    condition     = can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", var.clusterUUID))
    error_message = "clusterUUID is ${jsonencode(var.clusterUUID)}: it must be a UUID in lower case."
  }
}

variable "resourceManagementTimeout" {
  description = "How long a server or a volume may take to be created, changed or deleted."
  type        = string
  default     = "10m"

  validation {
    condition     = can(regex("^([0-9]+(h|m|s))+$", var.resourceManagementTimeout))
    error_message = "resourceManagementTimeout is ${jsonencode(var.resourceManagementTimeout)}: it must be a duration, such as 10m."
  }
}
