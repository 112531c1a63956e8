# Addresses of states that the reference wrote.
moved {
  from = openstack_compute_servergroup_v2.server_group[0]
  to   = module.server_group[0].openstack_compute_servergroup_v2.server_group
}
