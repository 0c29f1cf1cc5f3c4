"""Tests of the call path: arguments, answers, failures, hooks."""
