"""Slots of test labs: their locks, who uses one now, and what ends it afterwards."""
