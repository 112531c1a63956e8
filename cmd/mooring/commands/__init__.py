"""The `mooring` tool: one module for each group of its commands."""
