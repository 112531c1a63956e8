"""Status of a lab: its programs, and Nodes beside their servers. Pure."""
