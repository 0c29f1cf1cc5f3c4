"""The demo backend, as a client over a real socket meets it."""
