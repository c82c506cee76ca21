"""Bookmark Appliance: a self-hosted tracker of reading progress for serialised fiction, in one file."""

__version__ = "0.1.0"
