"""What the cloud controller managers of all clouds share: command line and wiring.

Knows the flows and the runtime, no provider: an entry point hands its cloud in.
"""
