"""Version of the component; CHANGELOG.md lists its changes."""

VERSION = "0.1.0"
