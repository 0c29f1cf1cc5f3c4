"""MCP over HTTP, in both eras."""
