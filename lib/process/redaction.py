"""Names and texts that indicate secrets; the last line of defence, not the first."""

import re

REDACTED = "[redacted]"

_SECRET = re.compile(
    r"passw(or)?d|passphrase|token|secret|authorization|credential|private_?key"
    r"|api_?key|cookie|user_?data",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"_(name|names|namespace|file|paths?|ttl|id|uid|count|type|kind|s)$",
    re.IGNORECASE,
)
_PROBLEM = (
    r"(?!(?:not set|must (?:not )?be|invalid value|unsupported value|unknown|no such"
    r"|permission denied|is a directory|not found|required)\b)"
)
"""What `lib.process.config` writes after a field in place of its value, which it has
withheld already: `password: not set: must be set` holds no secret."""
_IN_TEXT = (
    (re.compile(r"\b(Bearer|Basic|Negotiate)\s+[\w.~+/=-]{6,}", re.I), r"\1 "),
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)"), r"\1"),
    (
        re.compile(
            r"\b((?:x-)?(?:auth|subject|service)-token|password|client[_-]secret"
            r"|application_credential_secret|access_token)"
            r"([\"']?\s*[:=]\s*)" + _PROBLEM + r"([\"']?)[^\s\"',;&]+\3",
            re.I,
        ),
        r"\1\2",
    ),
    (
        re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.S),
        r"\1",
    ),
)


def is_secret(name: str) -> bool:
    """Report by its name whether a value must not be shown.

    Names of things that only lead to a secret (secret_name, token_file) may be.
    """
    plain = name.replace("-", "_")
    return bool(_SECRET.search(plain)) and not _HARMLESS.search(plain)


def scrub(text: str) -> str:
    """Take out of a text what is plainly a secret: bearer tokens, URL passwords."""
    for pattern, kept in _IN_TEXT:
        text = pattern.sub(kept + REDACTED, text)
    return text
