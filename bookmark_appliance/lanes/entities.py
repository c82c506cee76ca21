"""Character references in attribute values, by HTML's own rule for attributes.

`html.unescape` follows the rule for text: it turns `&copy=1` and `&region=eu` in an address into `©=1` and
`®ion=eu`, and raises on `&#` with more than 4,300 digits. In an attribute a name without its semicolon
counts only when it is a legacy name, complete, and not followed by `=` (HTML Living Standard, 13.2.5.73, "Named
character reference state").
"""

import html
import re
from html.entities import html5

MAX_REFERENCES = 30_000
"""References decoded in one value, `&quot;` and `&amp;` aside; later ones stay as written."""

_REFERENCE = re.compile(
    r"&(?!amp;)(?:#(?:0*+([0-9]{1,7}+)(?![0-9])|[xX]0*+([0-9a-fA-F]{1,6}+)(?![0-9a-fA-F]));?|([a-zA-Z][a-zA-Z0-9]{1,31}+)(;|(?!=)))"
)
"""Seven digits and 32 letters hold the longest there are; longer runs stay as they are."""


def unescape(value: str) -> str:
    """`value` with its character references decoded; a decoded line break becomes a space. Linear; never raises."""
    if "&" not in value:
        return value
    # `&quot;` yields no `&`, so it may go first: escaped JSON is full of it. Whatever yields `&` goes last.
    value = value.replace("&quot;", '"')
    return _REFERENCE.sub(_decode, value, count=MAX_REFERENCES).replace("&amp;", "&")


def _decode(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon = reference.groups()
    if name is not None:
        decoded = html5.get(name + semicolon, reference[0])
    else:
        # The tables of html.unescape know which numbers stand for another character and which for none.
        decoded = html.unescape(f"&#{decimal};" if decimal is not None else f"&#x{hexadecimal};")
    return {"&": "&amp;", "\n": " ", "\r": " "}.get(decoded, decoded)
