# Addresses of states that the reference wrote.
moved {
  from = module.network_security
  to   = module.network_security[0]
}

moved {
  from = openstack_networking_network_v2.internal
  to   = module.network.openstack_networking_network_v2.internal
}

moved {
  from = openstack_networking_subnet_v2.internal
  to   = module.network.openstack_networking_subnet_v2.internal
}

moved {
  from = openstack_compute_servergroup_v2.server_group[0]
  to   = module.server_group[0].openstack_compute_servergroup_v2.server_group
}

moved {
  from = openstack_networking_router_v2.router
  to   = module.router.openstack_networking_router_v2.router
}

moved {
  from = openstack_networking_router_interface_v2.router
  to   = module.router.openstack_networking_router_interface_v2.router
}

moved {
  from = openstack_networking_port_v2.bastion[0]
  to   = module.bastion_port[0].openstack_networking_port_v2.port
}

moved {
  from = openstack_blockstorage_volume_v3.root[0]
  to   = module.bastion[0].openstack_blockstorage_volume_v3.root[0]
}

moved {
  from = openstack_compute_instance_v2.bastion[0]
  to   = module.bastion[0].openstack_compute_instance_v2.server
}
