"""Tests of the processes of one gateway: what they share, and who watches over whom."""
