output "cloud_discovery_data" {
  description = "The OpenStackCloudDiscoveryData of this infrastructure."
  value = {
    apiVersion           = "deckhouse.io/v1"
    kind                 = "OpenStackCloudDiscoveryData"
    layout               = module.configuration.layout
    internalNetworkNames = [module.network.network_name]
    externalNetworkNames = module.external_network[*].name
    podNetworkMode       = module.configuration.pod_network_mode
    zones                = module.zones.names
    instances = {
      sshKeyPairName     = module.keypair.name
      imageName          = var.providerClusterConfiguration.masterNodeGroup.instanceClass.imageName
      mainNetwork        = module.network.network_name
      additionalNetworks = []
      securityGroups     = []
    }
    loadBalancer = {
      for name, id in {
        subnetID          = length(module.external_network) > 0 ? module.network.subnet_id : null
        floatingNetworkID = one(module.external_network[*].id)
      } : name => id if id != null
    }
  }
}
