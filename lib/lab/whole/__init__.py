"""The whole lab of `mooring lab`: its parts, its record, its demo."""
