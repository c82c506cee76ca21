"""Character references in attribute values, by HTML's own rule for attributes.

`html.unescape` follows the rule for text: it turns `&copy=1` and `&region=eu` in an address into `©=1` and
`®ion=eu`, and raises on `&#` with more than 4,300 digits. In an attribute a name without its semicolon
counts only when it is a legacy name, complete, and not followed by `=` (HTML Living Standard, 13.2.5.73, "Named
character reference state").
"""

import html
import re
from html.entities import html5

_REFERENCE = re.compile(r"&(?:#(?:0*+([0-9]{1,7})|[xX]0*+([0-9a-fA-F]{1,6}));?|([a-zA-Z][a-zA-Z0-9]{1,31}+)(;|(?!=)))")
"""32 characters hold the longest name there is; longer runs stay as they are."""


def unescape(value: str) -> str:
    """`value` with its character references decoded. Linear; never raises."""
    value = value.replace("&quot;", '"')  # yields no `&`, so it may go first; escaped JSON is full of them
    references = value.count("&")
    if not references:
        return value
    if value.count("&amp;") == references:
        return value.replace("&amp;", "&")
    return _REFERENCE.sub(_decode, value)


def _decode(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name, semicolon = reference.groups()
    if name is not None:
        return html5.get(name + semicolon, reference[0])
    # The tables of html.unescape know which numbers stand for another character and which for none.
    return html.unescape(f"&#{decimal};" if decimal is not None else f"&#x{hexadecimal};")
