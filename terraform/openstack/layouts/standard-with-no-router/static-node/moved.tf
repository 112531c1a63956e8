# Addresses of states that the reference wrote. Ports of additional networks have names
# here and numbers there: docs/layouts.md says what to do with them.
moved {
  from = module.static-node.openstack_networking_port_v2.port[0]
  to   = module.static_node.module.main_port.openstack_networking_port_v2.port
}

moved {
  from = module.static-node.openstack_blockstorage_volume_v3.volume[0]
  to   = module.static_node.module.server.openstack_blockstorage_volume_v3.root[0]
}

moved {
  from = module.static-node.openstack_compute_instance_v2.node
  to   = module.static_node.module.server.openstack_compute_instance_v2.server
}
