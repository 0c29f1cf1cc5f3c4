"""Tests of the console: its panes, its routes, and its page in a browser."""
