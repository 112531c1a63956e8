"""Which release this is; CHANGELOG.md says what is in it."""

VERSION = "0.1.0"
