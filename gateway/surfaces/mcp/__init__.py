"""The MCP surface: its wire, its answers, and its one HTTP route."""
