"""What the daemons of all kinds share above the runtime rooms.

Authorization of the secure port, and metrics of calls to cloud and API server.
Knows neither clouds nor flows; managers, flows and entry points import it.
"""
