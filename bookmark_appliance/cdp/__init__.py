"""The browser on another machine: a client of Chrome's debugging protocol (CDP) and reading pages in a tab of it."""
