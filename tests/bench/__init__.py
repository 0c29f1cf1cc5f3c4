"""Tests of the bench's own parts, which stand in where the programs it compares with are not installed."""
