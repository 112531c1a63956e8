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

module "external_network" {
  source = "../../../modules/external-network"

  name             = module.configuration.block.externalNetworkName
  must_be_external = false
}
