"""Which release this is; CHANGELOG.md lists its changes."""

VERSION = "0.1.0"
