"""One module a Site, each with its `SITE`; the registry is what stands in this folder (SITE-042)."""
