"""Serve a folder with nginx and the site's own configuration, on a free port of this computer only."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sources import ROOT

START_LIMIT = 90  # seconds

#: What ``serve`` is, for those who get it as a fixture.
Server = Callable[..., AbstractContextManager[str]]

# What surrounds a server block on a person's machine, with all that is written kept in one folder.
HTTP = """daemon off;
master_process off;
pid {folder}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    fastcgi_temp_path {folder}/fastcgi;
    proxy_temp_path {folder}/proxy;
    scgi_temp_path {folder}/scgi;
    uwsgi_temp_path {folder}/uwsgi;
    include {folder}/server.conf;
}}
"""


def nginx() -> str:
    """Where nginx is. Debian keeps it where only root looks.

    :raises FileNotFoundError: if it is not installed.
    """
    found = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
    if found is None:
        raise FileNotFoundError("nginx is not installed: apt-get install nginx-light")
    return found


def configured(folder: Path, port: int, below: str = "/", *, policy: bool = True) -> str:
    """The site's configuration, edited as its comments say; without ``policy`` a page may do what it wants.

    :raises ValueError: if it has no such line to edit.
    """
    text = (ROOT / "conf" / "nginx.conf").read_text(encoding="utf-8")
    edits = {"listen 80;": f"listen 127.0.0.1:{port};", "/srv/autograd-atlas/": f"{folder}/"}
    if below != "/":
        path = below.rstrip("/")
        edits |= {
            "# location = /some-fork { return 301 /some-fork/; }": f"location = {path} {{ return 301 {path}/; }}",
            "    location / {": f"    location {path}/ {{",
            " /404.html;": f" {path}/404.html;",
        }
    if not policy:
        edits["add_header Content-Security-Policy"] = "add_header X-No-Policy"
    for old, new in edits.items():
        if old not in text:
            raise ValueError(f"conf/nginx.conf has no {old!r}")
        text = text.replace(old, new)
    return text


@contextmanager
def serve(folder: Path, below: str = "/", *, policy: bool = True) -> Iterator[str]:
    """The address at which the folder is served for as long as the block runs, without a slash at its end.

    :param below: the path of the address below which the site stands.
    :param policy: whether its Content-Security-Policy is sent.
    :raises FileNotFoundError: if nginx is not installed.
    :raises RuntimeError: if it does not start.
    """
    program = nginx()
    with tempfile.TemporaryDirectory(prefix="atlas-nginx-") as name:
        place = Path(name)
        port = _free_port()
        (place / "nginx.conf").write_text(HTTP.format(folder=place), encoding="utf-8")
        (place / "server.conf").write_text(configured(folder, port, below, policy=policy), encoding="utf-8")
        with open(place / "log", "wb") as log:
            command = [program, "-e", "stderr", "-p", place, "-c", place / "nginx.conf"]
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            if not _answers(server, port):
                raise RuntimeError(f"nginx does not start: {(place / 'log').read_text(encoding='utf-8')}")
            yield f"http://127.0.0.1:{port}{below.rstrip('/')}"
        finally:
            server.terminate()
            server.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def _answers(server: subprocess.Popen[bytes], port: int) -> bool:
    until = time.monotonic() + START_LIMIT
    while server.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False
