"""The objects of layouts in an OpenStack project: read, never written.

A part of the provider room; `cloud.OpenStackLayouts` is its door.
"""
