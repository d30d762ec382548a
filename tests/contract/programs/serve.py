"""A small HTTP server that says which rank it is; tells its port, and serves until it is ended."""

import http.server
import json
import os


class Page(http.server.BaseHTTPRequestHandler):
    """Answers everything with the path that was asked for."""

    def do_GET(self) -> None:
        text = f"rank {os.environ['RANK']} of {os.environ['PODWRIGHT_RUN']} at {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


server = http.server.ThreadingHTTPServer(("", 0), Page)
print(json.dumps({"podwright": {"port": server.server_address[1]}}), flush=True)
server.serve_forever()
