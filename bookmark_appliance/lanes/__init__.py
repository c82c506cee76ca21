"""Poll Lanes: how a Series is read at its Site, when, and what is recorded of it."""
