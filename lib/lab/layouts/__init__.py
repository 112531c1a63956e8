"""The layouts of terraform/ in the lab: OpenTofu, its provider, and how it is run."""
