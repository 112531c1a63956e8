"""The cloud vocabulary: model, protocols, errors and provider ids, without any I/O.

Flows import these modules and never a provider room below; provider rooms implement
the protocols and never import a flow.
"""
