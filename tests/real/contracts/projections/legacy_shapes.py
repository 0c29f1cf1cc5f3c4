"""Shapes that no schema can cut, made into maps: plain functions of the answer; nothing of the gateway."""

from __future__ import annotations

from typing import Any


def latest(full: dict[str, Any], ctx: Any) -> dict[str, Any]:
    """The last sample of every series whose name begins with what was asked for."""
    samples = full["op"]["samples"]
    shown = {name: series[-1] for name, series in samples.items() if name.startswith(ctx.input["prefix"])}
    return {"at": full["op"]["lastTStamp"], "latest": shown, "hottest": full["hot_keys"]}


def handlers(full: dict[str, Any], ctx: Any) -> dict[str, Any]:
    """The objects behind one name of an array that alternates names and objects."""
    alternating = full["solr-mbeans"]
    beans = dict(zip(alternating[::2], alternating[1::2], strict=True))[ctx.input["category"]]
    return {name: _handler(bean) for name, bean in beans.items()}


def _handler(bean: dict[str, Any]) -> dict[str, Any]:
    stats = bean["stats"] or {}
    return {"class": bean["class"], **{key: stats[key] for key in ("requests", "avgTimePerRequest") if key in stats}}
