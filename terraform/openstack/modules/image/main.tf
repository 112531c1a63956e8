# The image and the flavor of a server: exactly one of each, with room for the disk.

variable "image_name" {
  description = "Name of the image."
  type        = string
}

variable "flavor_name" {
  description = "Name of the flavor."
  type        = string
}

variable "root_disk_gib" {
  description = "Size of the boot volume; null: the flavor's disk boots."
  type        = number
  default     = null
}

variable "field" {
  description = "Field of the instance class, for messages."
  type        = string
}

data "openstack_images_image_ids_v2" "image" {
  name = var.image_name

  lifecycle {
    postcondition {
      condition     = length(self.ids) == 1
      error_message = "${var.field}.imageName is ${jsonencode(var.image_name)}: ${length(self.ids) == 0 ? "the project sees no such image" : "images ${join(", ", self.ids)} all have that name; rename all but one"}."
    }
  }
}

data "openstack_compute_flavor_v2" "flavor" {
  name = var.flavor_name

  lifecycle {
    postcondition {
      condition     = coalesce(self.disk, 1) > 0 || var.root_disk_gib != null
      error_message = "${var.field}.flavorName is ${jsonencode(var.flavor_name)}, a flavor without a disk: set rootDiskSize."
    }
  }
}

output "image_id" {
  description = "ID of the image."
  value       = data.openstack_images_image_ids_v2.image.ids[0]
}
