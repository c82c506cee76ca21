"""Covers: how an image is got, checked, kept and served."""
