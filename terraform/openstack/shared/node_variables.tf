variable "nodeIndex" {
  description = "Number of the node in its group, from 0."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^(0|[1-9][0-9]{0,3})$", var.nodeIndex))
    error_message = "nodeIndex is ${jsonencode(var.nodeIndex)}: it must be a number from 0 to 9999."
  }
}

variable "cloudConfig" {
  description = "User data of the server in base64, or empty. Changes apply to new nodes only."
  type        = string
  default     = ""

  validation {
    condition     = var.cloudConfig == "" || can(regex("^[A-Za-z0-9+/]+={0,2}$", var.cloudConfig)) && length(var.cloudConfig) % 4 == 0
    error_message = "cloudConfig is not valid base64; it begins with ${jsonencode(substr(var.cloudConfig, 0, 8))}."
  }

  # Source: Nova API, "Create Server", user_data.
  validation {
    condition     = length(var.cloudConfig) <= 65535
    error_message = "cloudConfig has ${length(var.cloudConfig)} bytes in base64: Nova accepts 65535 at most."
  }
}

variable "floatingIPAddress" {
  description = "An existing floating IP of the project for this node, instead of a new one; empty: a new one. It is never deleted."
  type        = string
  default     = ""

  validation {
    condition     = var.floatingIPAddress == "" || can(cidrhost("${var.floatingIPAddress}/32", 0))
    error_message = "floatingIPAddress is ${jsonencode(var.floatingIPAddress)}: it must be an IPv4 address."
  }
}
