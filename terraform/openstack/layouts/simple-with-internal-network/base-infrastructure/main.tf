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

module "network" {
  source = "../../../modules/internal-network"

  name  = module.configuration.block.internalSubnetName
  field = "simpleWithInternalNetwork.internalSubnetName"
}

module "external_network" {
  source = "../../../modules/external-network"
  count  = try(module.configuration.block.externalNetworkName, null) == null ? 0 : 1

  name = module.configuration.block.externalNetworkName
}
