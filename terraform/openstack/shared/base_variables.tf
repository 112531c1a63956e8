variable "adoptUntagged" {
  description = "Accept an internal network of this cluster's name without the ownership tag of a cluster: of a state written before this version. Set it for the first apply only."
  type        = bool
  default     = false
}

variable "softAntiAffinity" {
  description = "With serverGroup policy AntiAffinity: prefer other hosts instead of requiring them. For new server groups only."
  type        = bool
  default     = false
}

variable "nodePortsUDP" {
  description = "Open the node ports for UDP, too."
  type        = bool
  default     = false
}

variable "ipv6Rules" {
  description = "Add the rules of the security group for IPv6, too."
  type        = bool
  default     = false
}
