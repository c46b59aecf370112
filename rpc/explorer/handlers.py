"""aiohttp handlers of the explorer."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from fastevm.rpc.explorer.files import PAGE, RULES, SentFile, page_files, policy

ROUTE: Final = "/explorer/{name}"
HTML: Final = "text/html"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ExplorerPage:
    """Serves the page and its files. The page calls ``node_url``, by default the serving node.

    Requests whose Accept header includes HTML get the page. These requests run no method, and their
    bodies are not read.
    """

    def __init__(self, node_url: str = "") -> None:
        self.node_url = node_url
        self.headers = RULES | {"Content-Security-Policy": policy(node_url)}

    def serve(self, app: web.Application) -> None:
        """Add routes of the page's files to an application. Its handler of ``/`` calls `page`."""
        app.router.add_get(ROUTE, self.file)

    def is_wanted(self, request: web.Request) -> bool:
        """Return whether a request comes from a browser that wants HTML."""
        return HTML in request.headers.get("Accept", "")

    async def page(self, request: web.Request) -> web.Response:
        """Return the page."""
        return self._answer(request, page_files(self.node_url)[PAGE])

    async def file(self, request: web.Request) -> web.Response:
        """Return a file that the page loads; 404 for unknown names."""
        found = page_files(self.node_url).get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        return self._answer(request, found)

    def _answer(self, request: web.Request, sent: SentFile) -> web.Response:
        headers = self.headers | {"ETag": sent.tag}
        if request.headers.get("If-None-Match") == sent.tag:
            return web.Response(status=304, headers=headers)
        body = sent.body
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            body = sent.packed
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, content_type=sent.kind, charset="utf-8", headers=headers)
