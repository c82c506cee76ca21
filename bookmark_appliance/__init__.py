"""Bookmark Appliance: a self-hosted tracker of reading progress for serialised fiction, in one file."""
