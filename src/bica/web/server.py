"""The server of the page: on this machine only, for whoever has the token; every trouble is one plain sentence."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeVar
from urllib.parse import parse_qs

import anyio
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bica.errors import BicaError, SettingError
from bica.model.fit import Fit
from bica.report.page import Looks, page_of, template
from bica.text import harmless
from bica.version import __version__
from bica.web.jobs import KINDS, Answerer, BusyError, Jobs
from bica.web.store import FitEntry, Store, TableEntry, bring, compared, is_model, parts, rename, shown_file

LOOPBACK = "127.0.0.1"
LARGEST = 200  # megabytes of a file that is dropped on the page
FOLDER_FULL = 20  # times that in all
JSON_BYTES = 1 << 20  # of any other request
SILENCE = 20.0  # seconds without a byte after which a request is given up
UPLOADS_AT_ONCE, COMPARISONS_AT_ONCE = 4, 2
CONNECTIONS = 600  # at the same time; further ones are refused
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
KINDS_OF_FILES = {".js": "text/javascript", ".css": "text/css"}
STATIC = ("page.js", "page.css", "report.js", "report.css")
LOOKS = Looks(
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/report.css">'
    '<link rel="stylesheet" href="/static/page.css">',
    '<script src="/static/report.js" data-waits></script><script src="/static/page.js"></script>',
    POLICY.replace("; frame-ancestors 'none'", ""),  # which a page cannot say of itself
)
HOW_TO_OPEN = "this page opens with the address that `bica serve` printed, which ends in a token\n"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Site:
    """What every request needs to know."""

    store: Store
    jobs: Jobs
    token: str
    port: int
    largest: int  # bytes of an upload
    uploads: asyncio.Semaphore
    answerer: Answerer
    comparisons: anyio.CapacityLimiter

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which a browser may call."""
        return tuple(f"{name}:{self.port}" for name in (LOOPBACK, "localhost"))

    @property
    def cookie(self) -> str:
        """Browsers share cookies among the ports of a machine, so each server has its own."""
        return f"bica-{self.port}"

    def signed(self, browser: str) -> str:
        """The cookie of a browser, which nobody makes without the token."""
        return f"{browser}.{hmac.new(self.token.encode(), browser.encode(), hashlib.sha256).hexdigest()}"

    def browser_in(self, cookie: str | None) -> str | None:
        """The browser that a cookie of ours names; None for any other."""
        browser = (cookie or "").partition(".")[0]
        same = hmac.compare_digest((cookie or "").encode(), self.signed(browser).encode())
        return browser if same and browser else None


class Guard:
    """Lets in whoever calls us by our own name, from our own page, with the token; and shows nobody a traceback."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app, self.site = app, site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            with contextlib.suppress(Exception):  # the browser went away, or was told already that there is a bug
                await self._answer(scope, receive, _guarded(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, site = Headers(scope=scope), self.site
        if headers.get("host") not in site.hosts:
            await PlainTextResponse("this is not the name of this page\n", 421)(scope, receive, send)
            return
        origin = headers.get("origin")
        foreign = origin is not None and origin not in {f"http://{host}" for host in site.hosts}
        if foreign or (origin is None and scope["method"] not in ("GET", "HEAD")):
            await PlainTextResponse("requests come from this page alone\n", 403)(scope, receive, send)
            return
        browser = site.browser_in(Request(scope).cookies.get(site.cookie))
        if browser is None and not self._has_token(scope):
            await PlainTextResponse(HOW_TO_OPEN, 403)(scope, receive, send)
            return
        scope["browser"] = browser or secrets.token_hex(8)
        cookie = f"{site.cookie}={site.signed(scope['browser'])}; Path=/; HttpOnly; SameSite=Strict"
        await self.app(scope, receive, send if browser else _guarded(send, cookie))

    def _has_token(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return scope["method"] == "GET" and hmac.compare_digest(given.encode(), self.site.token.encode())


def _guarded(send: Send, cookie: str | None = None) -> Send:
    """The same with our headers on every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in HEADERS.items():
                headers[name] = value
            if cookie is not None:
                headers.append("set-cookie", cookie)
        await send(message)

    return sending


def _refused(sentence: str, status: int) -> JSONResponse:
    return JSONResponse({"error": harmless(sentence)}, status)


class TooLargeError(BicaError, ValueError):
    """A request is larger than was announced as the limit."""


def make_app(
    store: Store, *, token: str, port: int, largest: int = LARGEST * 1_000_000, jobs: Jobs | None = None
) -> ASGIApp:
    """The page as an ASGI application; ``port`` is the one under which browsers call it."""
    site = Site(
        store,
        jobs or Jobs(store.folder),
        token,
        port,
        largest,
        asyncio.Semaphore(UPLOADS_AT_ONCE),
        Answerer(store.folder),
        anyio.CapacityLimiter(COMPARISONS_AT_ONCE),
    )

    @contextlib.asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        site.jobs.warm()
        try:
            yield
        finally:
            await asyncio.gather(site.jobs.close(), site.answerer.close())

    app = Starlette(routes=ROUTES, lifespan=living, exception_handlers=TROUBLE)
    app.state.site = site
    return Guard(app, site)


def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


async def _aside(request: Request, function: Callable[..., Answer], *given: Any, **named: Any) -> Answer:
    """Read and write in a thread, so that the page stays awake."""
    return await anyio.to_thread.run_sync(partial(function, *given, **named))


async def _pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body of a request; refused when it is too large, given up when nothing comes any more."""
    announced, n_bytes, stream = request.headers.get("content-length", "0"), 0, request.stream()
    if announced.isdecimal() and int(announced) > limit:
        raise TooLargeError(_too_large(limit))
    while True:
        try:
            piece = await asyncio.wait_for(anext(stream, None), SILENCE)
        except TimeoutError:
            raise HTTPException(408, "the request stopped in the middle; send it again") from None
        if piece is None:
            return
        n_bytes += len(piece)
        if n_bytes > limit:
            raise TooLargeError(_too_large(limit))
        yield piece


def _too_large(limit: int) -> str:
    return (
        f"files of up to {limit / 1e6:.4g} MB can be dropped here; give the path of a larger one instead, or start "
        "`bica serve --largest MEGABYTES`"
    )


async def _json(request: Request) -> dict[str, Any]:
    body = b"".join([piece async for piece in _pieces(request, JSON_BYTES)])
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise HTTPException(400, "the request is not a JSON object")
    return given


async def start_page(_: Request) -> Response:
    """The start page; also that of one table: the script looks at the address."""
    return HTMLResponse(_start_page())


def _start_page() -> str:
    html = files("bica.web").joinpath("static", "page.html").read_text("utf-8")
    return Template(html).substitute(style=LOOKS.style, script=LOOKS.script, version=__version__)


async def fit_page(request: Request) -> Response:
    """The report of a fit, live."""
    identity = request.path_params["identity"]
    try:
        kept = await _aside(request, parts, _site(request).store, identity)
    except BicaError:
        return HTMLResponse(_start_page(), 404)
    footer = f"bica {__version__}, on this machine alone: nothing leaves it."
    return HTMLResponse(page_of(kept, looks=LOOKS, footer=footer).html)


async def static(request: Request) -> Response:
    """Style and scripts, those of the report among them."""
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404, "there is no such file")
    own = files("bica.web").joinpath("static", name)
    text = template(name) if name.startswith("report") else own.read_text("utf-8")
    return Response(text, media_type=KINDS_OF_FILES[Path(name).suffix])


async def state(request: Request) -> Response:
    """What the start page lists: fits, tables, and the job of this browser."""
    site = _site(request)
    fits, tables = await _aside(request, lambda: (site.store.fits(), site.store.tables()))
    job = site.jobs.job(request.scope["browser"])
    return JSONResponse(
        {
            "fits": [asdict(entry) for entry in fits],
            "tables": [asdict(entry) | {"read": entry.read is not None} for entry in tables],
            "job": None if job is None else job.as_dict(),
            "largest": site.largest,
            "folder": str(site.store.folder),
        }
    )


def _brought(entry: TableEntry | FitEntry) -> Response:
    return JSONResponse({"fit" if isinstance(entry, FitEntry) else "table": entry.id})


async def upload(request: Request) -> Response:
    """A file that was dropped: a table is kept beside the fits, a model becomes one of them."""
    site = _site(request)
    async with site.uploads:
        if await _aside(request, site.store.n_bytes) > FOLDER_FULL * site.largest:
            raise TooLargeError("the folder of this page is full; forget tables that you no longer need")
        home = site.store.new_home("tables")
        name = shown_file(request.query_params.get("name", ""))
        try:
            await _received(request, home / f"table-{name}", site.largest)
            return _brought(await _aside(request, _kept, site.store, home, name))
        except BaseException:
            site.store.forget("tables", home.name)
            raise


async def _received(request: Request, path: Path, limit: int) -> None:
    async with await anyio.open_file(path, "wb") as file:
        async for piece in _pieces(request, limit):
            await file.write(piece)


def _kept(store: Store, home: Path, name: str) -> TableEntry | FitEntry:
    path = home / f"table-{name}"
    if not path.stat().st_size:
        raise SettingError(f"{name} is empty")
    if not is_model(path):
        return store.new_table(path, name, home=home)
    entry = store.keep_fit(Fit.load(path), title=name)
    store.forget("tables", home.name)
    return entry


async def by_path(request: Request) -> Response:
    """A file by its path on this machine."""
    path = (await _json(request)).get("path")
    if not isinstance(path, str):
        raise SettingError("give the path of a file")
    return _brought(await _aside(request, bring, _site(request).store, path))


async def table(request: Request) -> Response:
    """What is known about a table; or forget it."""
    store, identity = _site(request).store, request.path_params["identity"]
    if request.method == "DELETE":
        await _aside(request, store.forget, "tables", identity)
        return JSONResponse({})
    return JSONResponse(asdict(await _aside(request, store.table, identity)))


async def fit(request: Request) -> Response:
    """What is known about a fit; or forget it."""
    store, identity = _site(request).store, request.path_params["identity"]
    if request.method == "DELETE":
        await _aside(request, store.forget, "fits", identity)
        return JSONResponse({})
    entry, found = await _aside(request, lambda: (store.fit_entry(identity), store.fit(identity).model))
    return JSONResponse(asdict(entry) | {"sensors": found.sensors, "names": found.names})


async def job(request: Request) -> Response:
    """The job of this browser; or begin one."""
    site, browser = _site(request), request.scope["browser"]
    if request.method == "POST":
        task = await _json(request)
        wanted = task.get("kind")
        if not isinstance(wanted, str) or wanted not in KINDS:
            raise SettingError("there is no such job")
        site.jobs.start(browser, wanted, task)
    present = site.jobs.job(browser)
    return JSONResponse(None if present is None else present.as_dict())


async def stop(request: Request) -> Response:
    """Stop the job of this browser and keep the best so far."""
    present = _site(request).jobs.stop(request.scope["browser"])
    return JSONResponse(None if present is None else present.as_dict())


async def names(request: Request) -> Response:
    """Name sources."""
    given = await _json(request)
    shown = await _aside(request, rename, _site(request).store, request.path_params["identity"], given)
    return JSONResponse({"names": shown})


async def explanation(request: Request) -> Response:
    """Explain one observation."""
    task = {**await _json(request), "fit": request.path_params["identity"]}
    return JSONResponse(await _site(request).answerer.ask("explain", task))


async def comparison(request: Request) -> Response:
    """Two fits side by side."""
    site, sides = _site(request), [request.query_params.get(side, "") for side in ("a", "b")]
    async with site.comparisons:
        return JSONResponse(await _aside(request, compared, site.store, *sides))


async def download(request: Request) -> Response:
    """The model, a report to send, or the activity of a fit, as a file."""
    store, identity, name = _site(request).store, request.path_params["identity"], request.path_params["name"]
    entry = await _aside(request, store.fit_entry, identity)
    stem = shown_file(entry.title).partition(".")[0]
    path = store.home("fits", identity) / name
    if name not in ("model.json", "report.html", "activity.csv") or not path.is_file():
        raise HTTPException(404, "there is no such file")
    return FileResponse(path, filename=f"{stem}-{name}")


ROUTES = [
    Route("/", start_page),
    Route("/table/{identity}", start_page),
    Route("/fit/{identity}", fit_page),
    Route("/fit/{identity}/{name}", download),
    Route("/static/{name}", static),
    Route("/api/state", state),
    Route("/api/tables", upload, methods=["POST"]),
    Route("/api/paths", by_path, methods=["POST"]),
    Route("/api/tables/{identity}", table, methods=["GET", "DELETE"]),
    Route("/api/fits/{identity}", fit, methods=["GET", "DELETE"]),
    Route("/api/fits/{identity}/names", names, methods=["POST"]),
    Route("/api/fits/{identity}/explain", explanation, methods=["POST"]),
    Route("/api/compare", comparison),
    Route("/api/job", job, methods=["GET", "POST"]),
    Route("/api/job/stop", stop, methods=["POST"]),
]


async def _plainly(_: Request, error: Exception) -> Response:
    status = 413 if isinstance(error, TooLargeError) else 409 if isinstance(error, BusyError) else 400
    return _refused(str(error), status)


async def _by_status(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refused(str(error.detail), error.status_code)


async def _bug(_: Request, error: Exception) -> Response:
    return _refused(f"this is a bug in bica, not in your data ({type(error).__name__})", 500)


TROUBLE: Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    BicaError: _plainly,
    HTTPException: _by_status,
    Exception: _bug,
}


def listening_socket(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 takes a free one."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
        found.listen(CONNECTIONS)
    except OSError as error:
        found.close()
        raise SettingError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from None
    return found


def serve(store: Store, listener: socket.socket, *, token: str, largest: int) -> None:
    """Answer browsers until Ctrl-C."""
    import uvicorn

    app = make_app(store, token=token, port=listener.getsockname()[1], largest=largest)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listener])
