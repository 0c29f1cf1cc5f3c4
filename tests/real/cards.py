"""What each tool must show, worked out from the raw answer in plain Python; knows nothing of the gateway."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = Any


@dataclass(frozen=True)
class Real:
    """One answer, the call that fetches it, the request the backend must see and the card that must come of it."""

    file: str
    tool: str
    target: str
    card: Callable[[Json], Json]
    arguments: dict[str, Json] = field(default_factory=dict)
    #: Where the rows are in the full answer and in the card, and how many there are.
    rows: tuple[str, str, int] | None = None


def jira(full: Json) -> Json:
    def project(row: Json) -> Json:
        shown = only(row, "key", "name")
        if "projectCategory" in row:
            shown["projectCategory"] = only(row["projectCategory"], "name")
        return in_order_of(row, shown)

    return [project(row) for row in full]


def wikidata(full: Json) -> Json:
    shapes = {"wikibase-entityid": ("entity-type", "numeric-id", "id"), "monolingualtext": ("text", "language")}
    shapes["globecoordinate"] = ("latitude", "longitude", "altitude", "precision", "globe")
    shapes["time"] = ("time", "precision", "calendarmodel")
    shapes["quantity"] = ("amount", "unit", "upperBound", "lowerBound")

    def value(snak: Json) -> Json:
        if "datavalue" not in snak:
            return {}
        data = snak["datavalue"]
        told = data["value"] if data["type"] == "string" else only(data["value"], *shapes[data["type"]])
        return {"datavalue": in_order_of(data, {"type": data["type"], "value": told})}

    def entity(row: Json) -> Json:
        labels = {
            language: only(label, "value") for language, label in row["labels"].items() if language in ("en", "de")
        }
        claims = {
            name: [in_order_of(claim, {"rank": claim["rank"], "mainsnak": value(claim["mainsnak"])}) for claim in list_]
            for name, list_ in row["claims"].items()
        }
        return in_order_of(row, {"id": row["id"], "labels": labels, "claims": claims})

    return {"entities": {name: entity(row) for name, row in full["entities"].items()}}


def twitter(full: Json) -> Json:
    def status(row: Json) -> Json:
        shown = only(row, "id", "in_reply_to_status_id")
        if "retweeted_status" in row:
            shown["retweeted_status"] = only(row["retweeted_status"], "id")
        return in_order_of(row, shown)

    def user(row: Json) -> Json:
        shown = only(row, "id", "screen_name", "time_zone")
        if "status" in row:
            shown["status"] = status(row["status"])
        return in_order_of(row, shown)

    return in_order_of(full, {"users": [user(row) for row in full["users"]], "next_cursor": full["next_cursor"]})


def couchbase(full: Json) -> Json:
    latest = {name: series[59] for name, series in full["op"]["samples"].items() if re.match("vb_", name)}
    return {"at": full["op"]["lastTStamp"], "latest": latest, "hottest": full["hot_keys"]}


def reddit(full: Json) -> Json:
    def listing(node: Json) -> Json:
        return {"data": {"children": [child(each) for each in node["data"]["children"]]}}

    def child(node: Json) -> Json:
        fields = {"t1": ("author", "body", "score", "created_utc"), "t3": ("title", "score"), "more": ("count",)}
        shown = only(node["data"], *fields[node["kind"]])
        if node["kind"] == "t1":
            replies = node["data"]["replies"]
            shown["replies"] = replies if replies == "" else listing(replies)
        return in_order_of(node, {"kind": node["kind"], "data": in_order_of(node["data"], shown)})

    return [listing(node) for node in full]


def fhir(full: Json) -> Json:
    def item(row: Json) -> Json:
        shown = only(row, "linkId", "text", "type", "required", "repeats")
        if "item" in row:
            shown["item"] = [item(each) for each in row["item"]]
        return in_order_of(row, shown)

    shown = only(full, "resourceType", "id", "version", "status", "date", "publisher")
    return in_order_of(full, {**shown, "item": [item(each) for each in full["item"]]})


def weather(full: Json) -> Json:
    def feature(row: Json) -> Json:
        kept = only(row["properties"], "@id", "@type", "elevation", "stationIdentifier", "name", "timeZone")
        return {**only(row, "id", "type", "geometry"), "properties": kept}

    high = [row for row in full["features"] if row["properties"]["elevation"]["value"] > 300]
    return {"type": full["type"], "features": [feature(row) for row in high]}


def prometheus(full: Json) -> Json:
    return [{"metric": only(row["metric"], "job"), "values": row["values"]} for row in full]


def wordpress(full: Json) -> Json:
    def endpoint(row: Json) -> Json:
        return {"args": {name: only(each, "required") for name, each in row["args"].items()}}

    return {
        name: in_order_of(
            route, {"methods": route["methods"], "endpoints": [endpoint(each) for each in route["endpoints"]]}
        )
        for name, route in full.items()
    }


def solr(full: Json) -> Json:
    beans = full["solr-mbeans"][full["solr-mbeans"].index("QUERYHANDLER") + 1]

    def handler(bean: Json) -> Json:
        stats = bean["stats"] if bean["stats"] is not None else {}
        return {"class": bean["class"], **{k: stats[k] for k in ("requests", "avgTimePerRequest") if k in stats}}

    return {name: handler(bean) for name, bean in beans.items()}


def slurm(full: Json) -> Json:
    fields = ("job_id", "name", "job_state", "priority", "billable_tres", "array_task_id", "memory_per_node", "profile")

    def job(row: Json) -> Json:
        shown = only(row, *fields)
        return in_order_of(row, {**shown, "job_resources": only(row["job_resources"], "nodes")})

    return {"jobs": [job(row) for row in full["jobs"]]}


def redfish(full: Json) -> Json:
    def fan(row: Json) -> Json:
        low, high = row["LowerThresholdCritical"], row["UpperThresholdCritical"]
        return {
            "name": row["Name"],
            "rpm": row["Reading"],
            "low": low,
            "high": high,
            "health": row["Status"]["Health"],
        }

    warm = [
        {"name": row["Name"], "celsius": row["ReadingCelsius"], "high": row["UpperThresholdCritical"]}
        for row in full["Temperatures"]
    ]
    return {"id": full["@odata.id"], "fans": [fan(row) for row in full["Fans"]], "temperatures": warm}


def only(row: Json, *names: str) -> Json:
    """These keys of an object, where it has them, in its own order."""
    return {name: value for name, value in row.items() if name in names}


def in_order_of(row: Json, shown: Json) -> Json:
    """The keys of what is shown, in the order in which the backend wrote them."""
    return {name: shown[name] for name in row if name in shown}


REAL = (
    Real("jira-all-projects", "jira_projects", "/rest/api/2/project", jira, rows=("", "", 567)),
    Real(
        "wikidata-Q32063953",
        "wikidata_entities",
        "/w/api.php?ids=Q1040%7CQ42",
        wikidata,
        {"ids": ["Q1040", "Q42"]},
    ),
    Real(
        "twitter-get-friends-0-scrubbed",
        "twitter_friends",
        "/1.1/friends/list.json?screen_name=someone&cursor=-1&skip_status=false",
        twitter,
        {"screen_name": "someone"},
        ("users", "users", 200),
    ),
    Real(
        "couchbase-bucket-stats",
        "couchbase_stats",
        "/pools/default/buckets/beer-sample/stats?prefix=vb_",
        couchbase,
        {"bucket": "beer-sample", "prefix": "vb_"},
    ),
    Real("reddit-comments-scrubbed", "reddit_comments", "/comments/n49rw.json", reddit, {"post": "n49rw"}, ("", "", 2)),
    Real(
        "fhir-questionnaire",
        "fhir_questionnaire",
        "/Questionnaire/qs1?_elements=item,status,date",
        fhir,
        {"id": "qs1"},
        ("item", "item", 1),
    ),
    Real(
        "weathergov-gridpoints-stations",
        "weather_stations",
        "/gridpoints/ILN/90%2C15/stations",
        weather,
        {"office": "ILN", "grid": "90,15"},
    ),
    Real(
        "prometheus-up-range",
        "prometheus_range",
        "/api/v1/query_range?query=up&step=60s",
        prometheus,
        {"query": "up"},
        ("", "", 9),
    ),
    Real("wordpress-rest-index-routes", "wordpress_routes", "/wp-json/", wordpress),
    Real("solr-mbeans", "solr_mbeans", "/solr/main/admin/mbeans?category=QUERYHANDLER", solr, {"core": "main"}),
    Real("slurm-jobs", "slurm_jobs", "/slurm/v0.0.38/jobs", slurm, rows=("jobs", "jobs", 3)),
    Real(
        "redfish-dell-thermal",
        "redfish_thermal",
        "/redfish/v1/Chassis/System.Embedded.1/Thermal",
        redfish,
        {"chassis": "System.Embedded.1"},
        ("Fans", "fans", 16),
    ),
)
