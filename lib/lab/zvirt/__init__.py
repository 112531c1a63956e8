"""A simulated zVirt (oVirt) engine: what clients of its API notice, by the facts.

`transitions.py` lists every rule with its source and what is assumed.
"""
