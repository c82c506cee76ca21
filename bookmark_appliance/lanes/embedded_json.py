"""JSON embedded in a page, for the one hint that is read from it: whether the work is completed."""

import json
from collections.abc import Iterator
from typing import Any

MAX_EMBEDDED = 256 * 1024
"""Characters of embedded JSON that are parsed a page. A page with more leaves the hint in doubt, so it is false."""


def parse_embedded(text: str) -> Any:
    """The value of `text`; None when it is no JSON or too deeply nested for a page of ours."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object in `value`, itself included, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
