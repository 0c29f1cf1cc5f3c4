"""The surfaces: one per way of being called; each decodes to a Call and encodes an Outcome."""
