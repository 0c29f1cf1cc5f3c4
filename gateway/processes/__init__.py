"""The processes of one gateway: who starts, replaces and ends whom, and what they hand each other.

Knows no contract and imports nothing heavy, so that the process that watches over the others stays small.
"""
