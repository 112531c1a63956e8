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
