"""Descriptions of real APIs, cut small and made into contracts."""
