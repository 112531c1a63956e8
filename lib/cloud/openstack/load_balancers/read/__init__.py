"""What there is in the cloud: lists, what is kept of them, and whose it is."""
