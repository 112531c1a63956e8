"""Daemons of this repository in a lab: each under the ServiceAccount of its chart."""
