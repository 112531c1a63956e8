"""osdpl-controller as a process: its options, settings and parts."""
