locals {
  bastion       = try(module.configuration.block.bastion, null)
  bastion_class = try(local.bastion.instanceClass, null)
  bastions      = local.bastion_class == null ? [] : ["bastion"]
}

module "bastion_zone" {
  source = "../../../modules/zones"
  count  = length(local.bastions)

  allowed = try(local.bastion.zone, null) == null ? module.configuration.zones : [local.bastion.zone]
  field   = "standard.bastion.zone"
}

module "bastion_image" {
  source = "../../../modules/image"
  count  = length(local.bastions)

  image_name    = local.bastion_class.imageName
  flavor_name   = local.bastion_class.flavorName
  root_disk_gib = try(local.bastion_class.rootDiskSize, 50)
  field         = "standard.bastion.instanceClass"
}

module "bastion_port" {
  source = "../../../modules/port"
  count  = length(local.bastions)

  name               = "${module.configuration.prefix}-bastion"
  network_id         = module.network.network_id
  subnet_id          = module.network.subnet_id
  is_secured         = module.configuration.is_secured
  security_group_ids = module.network_security[*].id
  owner              = module.configuration.owner
  tags               = module.configuration.tags
}

module "bastion" {
  source = "../../../modules/server"
  count  = length(local.bastions)

  name        = "${module.configuration.prefix}-bastion"
  flavor_name = local.bastion_class.flavorName
  image_id    = module.bastion_image[0].image_id
  key_pair    = module.keypair.name
  zone        = module.bastion_zone[0].zone
  port_ids    = [module.bastion_port[0].id]
  metadata    = merge(module.configuration.metadata, try(local.bastion_class.additionalTags, {}))
  timeout     = var.resourceManagementTimeout
  root_volume = {
    name        = "${module.configuration.prefix}-bastion-root-volume"
    size_gib    = try(local.bastion_class.rootDiskSize, 50)
    volume_type = try(local.bastion.volumeType, null)
    zone        = module.bastion_zone[0].volume_zone
  }
}

# Neutron finds no way out before the router has its interface, nor may it lose it first.
module "bastion_floating_ip" {
  source     = "../../../modules/floating-ip"
  count      = length(local.bastions)
  depends_on = [module.router]

  pool    = module.configuration.block.externalNetworkName
  port_id = module.bastion_port[0].id
  owner   = "${module.configuration.prefix}-bastion of ${module.configuration.owner}"
  tags    = module.configuration.tags
}
