"""The DevTools protocol: its client, the held-tab reader and the browser host."""
