"""The pass-through: bytes both ways, observed, never rewritten; knows no contract, view, schema, call or aiohttp."""
