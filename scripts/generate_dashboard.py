#!/usr/bin/env python3
"""Writes a dashboard of deploy/grafana: generate_dashboard.py NAME > deploy/grafana/NAME.json

Each is a module of scripts/dashboards: rows of a title and panels; a panel is title, kind, unit, what it says, and its queries
with their legends.
"""
import json
import sys

from dashboards import fleet, job, node, own

BOARDS = {"gpuscope": node, "fleet": fleet, "job": job, "self": own}

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
FULL_WIDTH = 24
KINDS = {"lines": "timeseries", "stack": "timeseries", "stat": "stat", "table": "table"}


def options(kind):
    if kind == "stat":
        return {"colorMode": "none", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    if kind == "table":
        return {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]}
    return {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def defaults(kind, unit):
    field = {"unit": unit}
    if unit == "percentunit":
        field["min"] = 0
    if kind in ("lines", "stack"):
        field["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if kind == "stack" else 0, "showPoints": "never",
                           "stacking": {"mode": "normal" if kind == "stack" else "none", "group": "A"}}
    return field


def overrides(queries):
    """A sum that the others add up to is a line above the stack, no part of it."""
    unstacked = [legend for _, legend in queries if legend == "the driver's number"]
    return [{"matcher": {"id": "byName", "options": legend},
             "properties": [{"id": "custom.stacking", "value": {"mode": "none", "group": "B"}},
                            {"id": "custom.fillOpacity", "value": 0}, {"id": "custom.lineWidth", "value": 2}]}
            for legend in unstacked]


def targets(kind, queries):
    for letter, (expression, legend) in zip("ABCDEFGH", queries):
        target = {"refId": letter, "datasource": DATASOURCE, "expr": expression, "legendFormat": legend or "__auto"}
        if kind == "table":
            target |= {"instant": True, "format": "table"}
        yield target


def panel(number, place, description):
    title, kind, unit, says, queries = description
    return {"id": number, "type": KINDS[kind], "title": title, "description": says, "datasource": DATASOURCE, "gridPos": place,
            "fieldConfig": {"defaults": defaults(kind, unit), "overrides": overrides(queries)},
            "options": options(kind), "targets": list(targets(kind, queries))}


def panels(rows):
    number, top = 1, 0
    for title, row in rows:
        if title:
            yield {"id": number, "type": "row", "title": title, "collapsed": False, "panels": [],
                   "gridPos": {"x": 0, "y": top, "w": FULL_WIDTH, "h": 1}}
            number, top = number + 1, top + 1
        width, height = (8, 8) if title else (3, 4)
        for index, description in enumerate(row):
            beside = FULL_WIDTH // width
            place = {"x": index % beside * width, "y": top + index // beside * height, "w": width, "h": height}
            yield panel(number, place, description)
            number += 1
        top += -(-len(row) // (FULL_WIDTH // width)) * height


def choice(name, label, query, begins_with):
    """A variable; `first`: its first value is chosen at the beginning, and there is none for all."""
    chosen = {"current": {"text": ["All"], "value": ["$__all"]}, "includeAll": True, "allValue": ".*"}
    if begins_with == "first":
        chosen = {"current": {}, "includeAll": False}
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "query": {"query": query, "refId": name},
            "definition": query, "refresh": 2, "multi": True, "sort": 3} | chosen


def dashboard(board):
    about = board.BOARD
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}
    others = [{"title": other.BOARD["title"], "type": "link", "url": f"/d/{other.BOARD['uid']}"}
              for other in BOARDS.values() if other is not board]
    alerts = {"title": "Alerts", "type": "link", "url": "https://github.com/gpuscope/gpuscope/blob/main/docs/alerts.md"}
    return {"uid": about["uid"], "title": about["title"], "tags": ["gpu", "cuda"], "schemaVersion": 39, "version": 1,
            "editable": True, "description": about["description"], "timezone": "browser",
            "time": {"from": about["from"], "to": "now"}, "refresh": "30s", "graphTooltip": 1, "links": [*others, alerts],
            "annotations": {"list": [
                {"name": "Alerts", "datasource": DATASOURCE, "enable": True, "iconColor": "red",
                 "expr": 'ALERTS{alertname=~"Gpuscope.*",alertstate="firing",%s}' % board.ANNOTATED,
                 "titleFormat": "{{alertname}}", "textFormat": "{{instance}} {{gpu}} {{comm}}"}]},
            "templating": {"list": [source, *(choice(*each) for each in board.CHOICES)]},
            "panels": list(panels(board.ROWS))}


json.dump(dashboard(BOARDS[sys.argv[1]]), sys.stdout, indent=1, ensure_ascii=False)
print()
