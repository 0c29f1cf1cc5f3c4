"""The tests mirror the rooms of gateway/."""
