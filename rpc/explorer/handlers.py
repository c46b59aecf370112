"""aiohttp's handlers of the explorer."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from fastevm.rpc.explorer.files import PAGE, RULES, SentFile, page_files, policy

PLACE: Final = "/explorer/{name}"
HTML: Final = "text/html"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ExplorerPage:
    """The page and its files; ``node_url``: of the node that it calls, its own server's if empty.

    A browser asks for it by accepting HTML. Nothing here runs a method or reads a body.
    """

    def __init__(self, node_url: str = "") -> None:
        self.node_url = node_url
        self.headers = RULES | {"Content-Security-Policy": policy(node_url)}

    def serve(self, app: web.Application) -> None:
        """Add the files to an application; the page itself is for its handler of ``/``."""
        app.router.add_get(PLACE, self.file)

    def is_wanted(self, request: web.Request) -> bool:
        """Whether who asks is a browser that shows a page."""
        return HTML in request.headers.get("Accept", "")

    async def page(self, request: web.Request) -> web.Response:
        """The page."""
        return self._answer(request, page_files(self.node_url)[PAGE])

    async def file(self, request: web.Request) -> web.Response:
        """A file that the page loads; 404 for any other name."""
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
