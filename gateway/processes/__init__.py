"""The processes of one gateway: who starts, replaces and ends whom, and what they hand each other.

Knows no contract and imports nothing heavy, so that the process that watches over the others stays small.
"""

from __future__ import annotations

from typing import Final

#: Seconds within which a signal to end counts once: who tells a process and its group, as `timeout` does, tells twice.
SAME_SIGNAL: Final = 0.5
