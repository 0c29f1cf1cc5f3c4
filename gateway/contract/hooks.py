"""Imports a hook, `module:function`, into this process, fresh at each load. Knows nothing of what hooks are for."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from gateway.projection import Sources
from gateway.projection.worker import FolderFinder

Hook = Callable[[Any], Any]


def import_hook(reference: str) -> Hook | str:
    """The function that a reference names; or the sentence that refuses it. Call it within `modules_of(folder)`."""
    module, _, name = reference.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except (ImportError, SyntaxError) as fault:
        return f"the module `{module}` cannot be imported ({fault}); mend it, or the name"
    except (Exception, SystemExit) as fault:  # noqa: BLE001 (an operator's module may raise anything)
        return f"the module `{module}` raises {type(fault).__name__} while it is imported; mend it"
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        return f"the module `{module}` has no `{name}`; write it, or mend the name"
    if not callable(found):
        return f"`{reference}` is no function; write `def {name}(call): …`"
    if inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "__call__", None)):  # noqa: B004 (its kind is asked, not whether it is there)
        return f"`{reference}` is a coroutine function; write a plain one, `def {name}(call): …`"
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        return f"`{reference}` cannot be called with one argument; write `def {name}(call): …`"
    except ValueError:  # a builtin without a signature
        pass
    hook: Hook = found
    return hook


#: What earlier loads imported from their folders: no answer for this one.
_imported: set[str] = set()


@contextmanager
def modules_of(folder: str, sources: Sources | None = None) -> Iterator[None]:
    """One load: the folder comes first on the import path, and its modules are read anew, each once.

    So the hooks of one load share their module, and calls in flight keep that of the load before. What `sources` holds
    is imported from there, as projections are.
    """
    for name in _imported:
        sys.modules.pop(name, None)
    _imported.clear()
    before = set(sys.modules)
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    finder = None if sources is None else FolderFinder(sources.folder, sources.files)
    if finder is not None:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), finder)
    try:
        yield
    finally:
        for name in sys.modules.keys() - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(folder) in Path(file).parents:
                _imported.add(name)
        if finder is not None:
            sys.meta_path.remove(finder)
        sys.path.remove(folder)
        # Last, not first: what a hook imports later is found, and hides nothing of Python's own.
        if folder not in sys.path:
            sys.path.append(folder)
