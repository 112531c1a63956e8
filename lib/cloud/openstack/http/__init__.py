"""Calls: the client, its session, endpoints, answers and what failures mean."""
