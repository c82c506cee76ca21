"""A value that may be used and never shown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Wraps a secret text. `reveal()` is the one way to the value; printing, formatting and logging give `***`."""

    _value: str

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__
