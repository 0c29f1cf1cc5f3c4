"""The catalog room: what a tool says of itself. Pure."""
