"""Reads of the cloud: lists, their cache, and the ownership of what they hold."""
