# Addresses of states that the reference wrote.
moved {
  from = openstack_networking_port_v2.master_internal_with_security[0]
  to   = module.port.openstack_networking_port_v2.port
}

moved {
  from = openstack_networking_port_v2.master_internal_without_security[0]
  to   = openstack_networking_port_v2.master_internal_with_security[0]
}

moved {
  from = module.master.openstack_blockstorage_volume_v3.master[0]
  to   = module.master.openstack_blockstorage_volume_v3.root[0]
}

moved {
  from = module.master.openstack_compute_instance_v2.master
  to   = module.master.openstack_compute_instance_v2.server
}
