"""The OpenStack provider room: the only one that may import openstacksdk."""
