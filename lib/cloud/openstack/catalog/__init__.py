"""What an OpenStack project can use: flavors, images, networks, zones, volume types.

A part of the provider room; its door is `offers.connect`.
"""
