# The volume of etcd, attached after the server has started.

variable "name" {
  description = "Name of the volume."
  type        = string
}

variable "size_gib" {
  description = "Its size; it can grow while attached."
  type        = number
}

variable "volume_type" {
  description = "Its type, at creation."
  type        = string
}

variable "zone" {
  description = "Its zone, at creation; null: Cinder chooses."
  type        = string
}

variable "server_id" {
  description = "ID of the server."
  type        = string
}

variable "metadata" {
  description = "Metadata of the volume."
  type        = map(string)
}

variable "timeout" {
  description = "How long creating or deleting may take."
  type        = string
}

resource "openstack_blockstorage_volume_v3" "kubernetes_data" {
  name                 = var.name
  size                 = var.size_gib
  volume_type          = var.volume_type
  availability_zone    = var.zone
  enable_online_resize = true
  metadata             = var.metadata

  timeouts {
    create = var.timeout
    delete = var.timeout
  }

  lifecycle {
    ignore_changes = [volume_type, availability_zone]
  }
}

resource "openstack_compute_volume_attach_v2" "kubernetes_data" {
  instance_id = var.server_id
  volume_id   = openstack_blockstorage_volume_v3.kubernetes_data.id
}

# A virtio disk has the first 20 characters of the volume's ID as its serial number. The
# name that Nova assumes, such as /dev/vdb, is not kept by guests.
output "device_path" {
  description = "Path of the disk in the server."
  value       = "/dev/disk/by-id/virtio-${substr(openstack_compute_volume_attach_v2.kubernetes_data.volume_id, 0, 20)}"
}
