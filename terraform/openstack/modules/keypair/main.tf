variable "name" {
  description = "Name of the key pair."
  type        = string
}

variable "public_key" {
  description = "The public SSH key."
  type        = string
}

resource "openstack_compute_keypair_v2" "ssh" {
  name       = var.name
  public_key = var.public_key
}

output "name" {
  description = "Name of the key pair."
  value       = openstack_compute_keypair_v2.ssh.name
}
