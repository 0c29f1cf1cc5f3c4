"""How many files a process may hold open, connections among them: as many as the system allows."""

from __future__ import annotations

import sys

#: What a start takes, with some room: listeners, projections in processes of their own, what is kept back.
ENOUGH = 128


def raise_to_what_is_allowed() -> str | None:
    """Take all that this process, and those that it starts, may have; a sentence where that is too little to serve.

    The soft limit is often 1024, for the sake of programs that wait with `select`; ours do not, and a relayed
    connection holds two.
    """
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # a system that allows less than it says: what there was stays
            hard = soft
    if hard == resource.RLIM_INFINITY or hard >= ENOUGH:
        return None
    return f"a process may hold {hard} files open here, and a gateway needs {ENOUGH} at least: raise it (`ulimit -n`)"
