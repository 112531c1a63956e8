"""Writes JSON byte for byte as Go does. Pure.

Source: Go encoding/json, Marshal.
"""

import json


def dump(value: object) -> str:
    """Write a value: keys sorted, no blanks, <, > and & escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
