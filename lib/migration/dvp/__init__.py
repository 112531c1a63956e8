"""The migration from Deckhouse's module for DVP. Pure."""
