output "cloud_discovery_data" {
  description = "The OpenStackCloudDiscoveryData of this infrastructure."
  value = {
    apiVersion           = "deckhouse.io/v1"
    kind                 = "OpenStackCloudDiscoveryData"
    layout               = module.configuration.layout
    internalNetworkNames = [module.network.name]
    externalNetworkNames = [module.external_network.name]
    podNetworkMode       = module.configuration.pod_network_mode
    zones                = module.zones.names
    instances = {
      sshKeyPairName     = module.keypair.name
      imageName          = var.providerClusterConfiguration.masterNodeGroup.instanceClass.imageName
      mainNetwork        = module.external_network.name
      additionalNetworks = [module.network.name]
      securityGroups     = module.network_security[*].name
    }
    loadBalancer = {}
  }
}
