"""What a server of OpenStack finds out about itself, without credentials.

Sources: the config drive, read without mounting it, and the metadata service. No module
of this package imports the SDK.
"""
