module "configuration" {
  source = "../../../modules/configuration"

  cluster      = var.clusterConfiguration
  document     = var.providerClusterConfiguration
  cluster_uuid = var.clusterUUID
}

locals {
  group         = var.providerClusterConfiguration.masterNodeGroup
  class         = local.group.instanceClass
  name          = "${module.configuration.prefix}-master-${var.nodeIndex}"
  root_disk_gib = try(local.class.rootDiskSize, null)
  metadata      = merge(module.configuration.metadata, try(local.class.additionalTags, {}))
}

module "zones" {
  source = "../../../modules/zones"

  allowed      = module.configuration.zones
  volume_types = local.group.volumeTypeMap
  index        = tonumber(var.nodeIndex)
}

module "image" {
  source = "../../../modules/image"

  image_name    = local.class.imageName
  flavor_name   = local.class.flavorName
  root_disk_gib = local.root_disk_gib
  field         = "masterNodeGroup.instanceClass"
}

module "master_server_group" {
  source = "../../../modules/master-server-group"

  prefix       = module.configuration.prefix
  server_group = try(local.group.serverGroup, null)
}

module "network" {
  source = "../../../modules/internal-network"

  name  = module.configuration.block.internalSubnetName
  field = "simpleWithInternalNetwork.internalSubnetName"
}

module "additional_groups" {
  source = "../../../modules/security-groups"

  names = try(local.class.additionalSecurityGroups, [])
}

module "port" {
  source = "../../../modules/port"

  name               = local.name
  network_id         = module.network.network_id
  subnet_id          = module.network.subnet_id
  security_group_ids = module.additional_groups.ids
  pod_cidrs          = module.configuration.pod_cidrs
  owner              = module.configuration.owner
  tags               = module.configuration.tags
}

module "master" {
  source = "../../../modules/server"

  name            = local.name
  flavor_name     = local.class.flavorName
  image_id        = module.image.image_id
  key_pair        = module.configuration.prefix
  zone            = module.zones.zone
  user_data       = var.cloudConfig
  config_drive    = module.configuration.config_drive
  port_ids        = [module.port.id]
  server_group_id = module.master_server_group.id
  metadata        = local.metadata
  timeout         = var.resourceManagementTimeout
  root_volume = local.root_disk_gib == null ? null : {
    name        = "${module.configuration.prefix}-master-root-volume-${var.nodeIndex}"
    size_gib    = local.root_disk_gib
    volume_type = module.zones.volume_type
    zone        = module.zones.volume_zone
  }
}

module "kubernetes_data" {
  source = "../../../modules/kubernetes-data"

  name        = "${module.configuration.prefix}-kubernetes-data-${var.nodeIndex}"
  size_gib    = try(local.class.etcdDiskSizeGb, 10)
  volume_type = module.zones.volume_type
  zone        = module.zones.volume_zone
  server_id   = module.master.id
  metadata    = local.metadata
  timeout     = var.resourceManagementTimeout
}

module "floating_ip" {
  source = "../../../modules/floating-ip"
  count  = try(module.configuration.block.masterWithExternalFloatingIP, true) && try(module.configuration.block.externalNetworkName, null) != null ? 1 : 0

  pool     = module.configuration.block.externalNetworkName
  existing = var.floatingIPAddress
  port_id  = module.port.id
  owner    = "${local.name} of ${module.configuration.owner}"
  tags     = module.configuration.tags
}
