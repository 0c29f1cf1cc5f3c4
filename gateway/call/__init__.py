"""The call room: one tool call, from arguments to one Outcome. Knows no surface."""
