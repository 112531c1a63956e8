"""Layouts of terraform/: what roots would create, and what a plan would destroy.

Pure; entry points read files and print.
"""
