"""Tests of the authoring room."""
