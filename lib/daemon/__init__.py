"""What the daemons of all kinds share above the runtime rooms.

Who may read the secure port, and what is counted of calls to cloud and API server.
Knows neither clouds nor flows; managers, flows and entry points import it.
"""
