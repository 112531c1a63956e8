"""Images of components, built without container engine, daemon or root.

A description in images/NAME, pinned Debian packages, and the component's PEX become an
OCI layout of few layers, the same bytes for the same commit. decision 145.
"""
