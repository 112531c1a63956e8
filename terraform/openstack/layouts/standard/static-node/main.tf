module "configuration" {
  source = "../../../modules/configuration"

  cluster      = var.clusterConfiguration
  document     = var.providerClusterConfiguration
  cluster_uuid = var.clusterUUID
}

module "static_node" {
  source = "../../../modules/static-node"

  group            = one([for group in var.providerClusterConfiguration.nodeGroups : group if group.name == var.nodeGroupName])
  node_index       = tonumber(var.nodeIndex)
  prefix           = module.configuration.prefix
  zones            = module.configuration.zones
  security_groups  = module.configuration.is_secured ? [module.configuration.prefix] : []
  internal_network = module.configuration.prefix
  pod_cidrs        = module.configuration.pod_cidrs
  floating_ip      = var.floatingIPAddress
  user_data        = var.cloudConfig
  owner            = module.configuration.owner
  tags             = module.configuration.tags
  metadata         = module.configuration.metadata
  timeout          = var.resourceManagementTimeout
}
