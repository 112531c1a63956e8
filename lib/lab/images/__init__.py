"""Images of components, built without Docker and without a registry.

Here: the root file system of a component, and its OCI archive. The descriptions are in
images/; the programs come from a PEX and from the lab's pinned Go modules.
"""
