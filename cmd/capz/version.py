"""Version of this release, described in CHANGELOG.md."""

VERSION = "0.1.0"
