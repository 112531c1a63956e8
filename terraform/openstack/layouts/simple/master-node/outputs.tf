output "master_ip_address_for_ssh" {
  description = "The address that the installer connects to."
  value       = module.master.address
}

output "node_internal_ip_address" {
  description = "The address on the internal network."
  value       = module.master.address
}

output "kubernetes_data_device_path" {
  description = "Path of etcd's disk in the server."
  value       = module.kubernetes_data.device_path
}
