"""Real answers of twelve APIs, served through views that were written for them."""
