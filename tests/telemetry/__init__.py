"""Tests of metrics and log."""
