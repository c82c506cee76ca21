"""The Quart-Trio application and the server that contains it."""
