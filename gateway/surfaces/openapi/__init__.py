"""What the gateway's own listeners answer, as OpenAPI 3.1 written by hand: `tools.json`, `admin.json`."""
