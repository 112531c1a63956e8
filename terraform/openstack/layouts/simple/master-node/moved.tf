# Addresses of states that the reference wrote.
moved {
  from = openstack_blockstorage_volume_v3.master[0]
  to   = module.master.openstack_blockstorage_volume_v3.root[0]
}

moved {
  from = openstack_compute_instance_v2.master
  to   = module.master.openstack_compute_instance_v2.server
}
