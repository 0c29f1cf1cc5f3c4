"""Tests of the projection room."""
