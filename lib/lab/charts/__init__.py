"""The charts of the tree: the helm that renders them, and their snapshots."""
