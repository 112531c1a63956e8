"""The flow: observe, decide, act; the status and the releases of a deployment."""
