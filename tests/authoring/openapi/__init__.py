"""What `toolview import openapi` makes of descriptions."""
