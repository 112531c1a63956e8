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
      mainNetwork        = module.network.name
      additionalNetworks = []
      securityGroups     = module.network_security[*].name
    }
    loadBalancer = {
      subnetID          = module.network.subnet_id
      floatingNetworkID = module.external_network.id
    }
  }
}

output "bastion_ip_address_for_ssh" {
  description = "Address of the bastion, empty without one."
  value       = try(module.bastion_floating_ip[0].address, "")
}
