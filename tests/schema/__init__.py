"""The schema room, tested: what it refuses, checks, cuts and completes."""
