module "configuration" {
  source = "../../../modules/configuration"

  cluster      = var.clusterConfiguration
  document     = var.providerClusterConfiguration
  cluster_uuid = var.clusterUUID
}

module "zones" {
  source = "../../../modules/zones"

  allowed = module.configuration.zones
}

module "keypair" {
  source = "../../../modules/keypair"

  name       = module.configuration.prefix
  public_key = trimspace(var.providerClusterConfiguration.sshPublicKey)
}

module "server_group" {
  source = "../../../modules/server-group"
  count  = try(var.providerClusterConfiguration.masterNodeGroup.serverGroup.policy, "") == "AntiAffinity" ? 1 : 0

  name    = module.configuration.prefix
  is_soft = var.softAntiAffinity
}

module "network_security" {
  source = "../../../modules/network-security"
  count  = module.configuration.is_secured ? 1 : 0

  name           = module.configuration.prefix
  ssh_from       = try(var.providerClusterConfiguration.sshAllowList, ["0.0.0.0/0"])
  node_ports_udp = var.nodePortsUDP
  ipv6           = var.ipv6Rules
  owner          = module.configuration.owner
  tags           = module.configuration.tags
}

module "external_network" {
  source = "../../../modules/external-network"

  name             = module.configuration.block.externalNetworkName
  must_be_external = false
}

module "network" {
  source = "../../../modules/network"

  name           = module.configuration.prefix
  cidr           = module.configuration.block.internalNetworkCIDR
  has_gateway    = false
  is_secured     = module.configuration.is_secured
  owner          = module.configuration.owner
  tags           = module.configuration.tags
  adopt_untagged = var.adoptUntagged
}
