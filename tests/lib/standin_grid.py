# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the services that know the grid: their answers on loopback, with faults on request.

    with Grid() as grid:
        environment = grid.environment()
        grid.mood = "429"

Answers are made by hand in the services' published forms, over a course that `value_at` gives. `log` has every
request as (path, query, headers).
"""

import base64
import datetime
import http.server
import json
import socketserver
import threading
import time
import urllib.parse

KEY = "em-key-0123456789"
USER, PASSWORD = "reader", "pass:word"
POUND_G = 453.59237


def utc(text):
    """The second that a time in a request means."""
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def stamp(second, form="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime(form)


def minute(second):
    return stamp(second, "%Y-%m-%dT%H:%MZ")


def offset(second):
    return stamp(second, "%Y-%m-%dT%H:%M:%S+00:00")


def value_at(second):
    """A whole number of g/kWh that is another one in every five minutes of a day."""
    return 100 + (second // 300) % 288


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def say(self, status, body, headers=()):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def misbehaves(self):
        """Whether the service's mood of the moment is all that the client gets."""
        mood = self.server.owner.mood
        if mood is None or self.path.startswith("/wt/login"):
            return False
        if mood == "hang":
            self.server.owner.closing.wait(3600)
            self.close_connection = True
        elif mood == "html":
            self.say(200, "<html><body>Sign in to the network</body></html>")
        elif mood == "malformed":
            self.say(200, "{\"data\": [")
        elif mood == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            self.close_connection = True
        elif mood == "moved":
            self.say(302, None, [("Location", "http://127.0.0.1:9/")])
        elif mood == "204":
            self.say(204, None)
        elif isinstance(mood, (dict, list)):
            self.say(200, mood)
        else:
            status, _, after = mood.partition(":")
            body = {"error": {"code": status, "message": f"in a mood of {status}"}}
            self.say(int(status), body, [("Retry-After", after)] if after else ())
        return True

    def do_GET(self):
        owner = self.server.owner
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        with owner.lock:
            owner.log.append((parts.path, query, dict(self.headers)))
        if owner.delay_s:
            owner.closing.wait(owner.delay_s)
        if self.misbehaves():
            return
        service, _, rest = parts.path.removeprefix("/").partition("/")
        getattr(self, service)(rest, query)

    # Great Britain: half-hours, minutes alone, the half-hour that ends at `from` comes first.

    def gb(self, path, _query):
        owner, words = self.server.owner, path.split("/")
        regional = words[0] == "regional"
        start, end = words[2:4] if regional else words[1:3]
        start = utc(start)
        end = start + int(end[2:4]) * 3600 if end.startswith("fw") else utc(end)
        rows = []
        for at in range(start // 1800 * 1800 - 1800, end, 1800):
            intensity = {"forecast": value_at(at) + 3, "index": "moderate"}
            if not regional:
                intensity["actual"] = value_at(at) + owner.revision if at + 1800 <= time.time() else None
            rows.append({"from": minute(at), "to": minute(at + 1800), "intensity": intensity})
        if regional:
            self.say(200, {"data": {"regionid": 13, "shortname": "London", "data": rows}})
        else:
            self.say(200, {"data": rows})

    # Electricity Maps: hours, a key, revisions.

    def em(self, path, query):
        owner = self.server.owner
        given = self.headers.get(owner.key_header)
        if given != KEY:
            return self.say(401, {"error": f"Invalid {owner.key_header} {given}"})
        if query["zone"] == "XX":
            return self.say(404, {"error": "No recent data for zone XX"})
        kind = query.get("emissionFactorType", "lifecycle")
        shift = 0 if kind == "direct" else 50
        now = int(time.time()) // 3600 * 3600

        def row(at):
            return {"zone": query["zone"], "carbonIntensity": value_at(at) + shift + owner.revision,
                    "datetime": stamp(at, "%Y-%m-%dT%H:%M:%S.000Z"), "updatedAt": stamp(now + owner.revision),
                    "createdAt": stamp(at), "emissionFactorType": kind, "isEstimated": at >= now - 7200,
                    "estimationMethod": None}
        route = path.rpartition("/")[2]
        if route == "history":
            return self.say(200, {"zone": query["zone"], "history": [row(now - 3600 * i) for i in range(23, -1, -1)]})
        if not owner.commercial:
            return self.say(403, {"error": "Endpoint not available"})
        if route == "past-range":
            first = -(-utc(query["start"]) // 3600) * 3600
            return self.say(200, {"zone": query["zone"], "data": [row(at) for at in range(first, utc(query["end"]), 3600)]})
        points = [{"carbonIntensity": value_at(now + 3600 * i) + shift, "datetime": stamp(now + 3600 * i)}
                  for i in range(1, 25)]
        return self.say(200, {"zone": query["zone"], "forecast": points, "updatedAt": stamp(now)})

    # WattTime: five minutes, pounds per MWh, tokens.

    def wt(self, path, query):
        owner = self.server.owner
        if path == "login":
            right = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            if self.headers.get("Authorization") != right:
                return self.say(403, {"message": f"bad login {self.headers.get('Authorization')}"})
            owner.logins += 1
            return self.say(200, {"token": f"token-{owner.logins}"})
        if owner.logins < owner.good_login or self.headers.get("Authorization") != f"Bearer token-{owner.logins}":
            return self.say(401, {"message": "token expired"})
        if query["region"] != "CAISO_NORTH":
            return self.say(403, {"message": "not subscribed"})
        now = int(time.time()) // 300 * 300
        first, last = (now, now + int(query["horizon_hours"]) * 3600) if path == "v3/forecast" else (
            utc(query["start"]), utc(query["end"]))
        rows = [{"point_time": offset(at), "value": value_at(at) * 1000 / POUND_G} for at in range(-(-first // 300) * 300, last, 300)]
        return self.say(200, {"data": rows, "meta": {
            "data_point_period_seconds": 300, "region": query["region"], "signal_type": query["signal_type"],
            "units": "lbs_co2_per_mwh", "generated_at": offset(now), "warnings": []}})

    # The Carbon Aware SDK: three spellings. Rows name the region of its source, the newest first.

    def sdk(self, path, query):
        place = query["location"]
        if place == "nowhere":
            return self.say(400, {"title": "ValidationProblem", "detail": "Unknown location", "status": 400, "errors": {}})
        if path == "emissions/bylocation":
            first, last = (utc(query[name].replace(" ", "+")) for name in ("time", "toTime"))
            return self.say(200, [{"location": "PJM_ROANOKE", "time": offset(at), "rating": value_at(at) + 0.25,
                                   "duration": "00:05:00"} for at in reversed(range(first // 300 * 300, last, 300))])
        if self.server.owner.no_forecast:
            return self.say(501, {"title": "NotImplemented", "detail": "source cannot forecast", "status": 501})
        now = int(time.time()) // 300 * 300
        window = self.server.owner.window
        points = [{"location": "PJM_ROANOKE", "timestamp": offset(at), "duration": window, "value": value_at(at) + 0.5}
                  for at in range(now + 300, now + 86400, 300)]
        return self.say(200, [{"generatedAt": offset(now), "location": place, "windowSize": window,
                               "optimalDataPoints": points[:1], "forecastData": points}])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


class Grid:
    def __init__(self):
        self.mood = None
        self.revision = 0  # added to actual values
        self.commercial = True
        self.no_forecast = False
        self.key_header = "auth-token"  # in which Electricity Maps wants its key
        self.window = 5
        self.delay_s = 0.0
        self.logins = 0
        self.good_login = 0  # tokens before this one are refused
        self.log = []
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.owner = self
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def paths(self):
        return [path for path, _query, _headers in self.log]

    def environment(self, cache):
        base = f"http://127.0.0.1:{self.server.server_address[1]}"
        return {"FLYBALL_GB_URL": base + "/gb", "FLYBALL_ELECTRICITY_MAPS_URL": base + "/em/v4/",
                "FLYBALL_WATTTIME_URL": base + "/wt", "FLYBALL_CARBON_AWARE_URL": base + "/sdk",
                "FLYBALL_ELECTRICITY_MAPS_KEY": KEY, "FLYBALL_WATTTIME_USER": USER,
                "FLYBALL_WATTTIME_PASSWORD": PASSWORD, "FLYBALL_CARBON_CACHE": str(cache)}
