"""What provider packages share: shared reads, circuits, bounded fan-out, absence.

Provider packages and entry points import it, flows do not: to them it is hidden behind
the protocols of lib/cloud. It knows no provider; names of services, clouds and regions
are arguments.
"""
