"""Reads foreign JSON: large text in pieces, so that other threads can run, with a depth limit.

A parser holds the GIL from the first byte to the last: 30 MB of small objects stop an event loop
for seconds, whichever thread parses them. This module cuts an array or object between its items,
without the GIL, into texts of about `PIECE` bytes, and parses one text after the other.

Parsers recurse on the C stack and rely on Python's recursion limit, which any package may raise
until the stack overflows. So this module measures the depth first.
"""

import json
import re

DEEPEST = 4_096  # highest nesting of arrays and objects; a trace of 1,024 calls has about 2,100
PIECE = 65_536  # bytes that are parsed in one step
DEPTH = 64  # arrays and objects nested deeper than this are not cut into pieces
_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:', re.DOTALL)
_BLANKS = b" \t\r\n"


cdef enum:
    QUOTE = 34
    COMMA = 44
    OPENING_BRACKET = 91
    BACKSLASH = 92
    CLOSING_BRACKET = 93
    OPENING_BRACE = 123
    CLOSING_BRACE = 125


cdef Py_ssize_t item_end(const unsigned char* text, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Returns the offset of the comma after the item that begins at ``at``, or ``end``."""
    cdef Py_ssize_t depth = 0
    cdef unsigned char c
    while at < end:
        c = text[at]
        if c == QUOTE:
            at += 1
            while at < end and text[at] != QUOTE:
                at += 2 if text[at] == BACKSLASH else 1
        elif c == OPENING_BRACKET or c == OPENING_BRACE:
            depth += 1
        elif c == CLOSING_BRACKET or c == CLOSING_BRACE:
            depth -= 1
        elif c == COMMA and depth == 0:
            return at
        at += 1
    return end


cdef Py_ssize_t piece_end(
    const unsigned char* text, Py_ssize_t at, Py_ssize_t end, Py_ssize_t size
) noexcept nogil:
    """Returns the end of the piece that begins at ``at``: the offset of a comma, or ``end``.

    A piece is a single large item, or the small items before the next large item.
    """
    cdef Py_ssize_t start = at
    cdef Py_ssize_t stop = start - 1  # end of the items that the piece has so far
    cdef Py_ssize_t found
    while True:
        found = item_end(text, at, end)
        if found - at > size and stop >= start:
            return stop  # the large item is the next piece
        stop = found
        if found == end or found - start > size:
            return found
        at = found + 1


cdef bint exceeds(const unsigned char* text, Py_ssize_t size, Py_ssize_t most) noexcept nogil:
    """Returns whether more than ``most`` arrays and objects are open at once."""
    cdef Py_ssize_t depth = 0, at = 0
    cdef unsigned char c
    while at < size:
        c = text[at]
        if c == QUOTE:
            at += 1
            while at < size and text[at] != QUOTE:
                at += 2 if text[at] == BACKSLASH else 1
        elif c == OPENING_BRACKET or c == OPENING_BRACE:
            depth += 1
            if depth > most:
                return True
        elif c == CLOSING_BRACKET or c == CLOSING_BRACE:
            depth -= 1
        at += 1
    return False


cdef Py_ssize_t openings(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Returns the number of opening brackets and braces. gcc vectorises this loop."""
    cdef Py_ssize_t count = 0, at
    for at in range(size):
        count += (text[at] == OPENING_BRACKET) | (text[at] == OPENING_BRACE)
    return count


def is_too_deep(text, Py_ssize_t most=DEEPEST) -> bool:
    """Returns whether arrays and objects of a JSON text in UTF-8 are nested deeper than ``most``.
    """
    if len(text) <= most:
        return False
    cdef bytes body = text.encode() if isinstance(text, str) else bytes(text)
    cdef const unsigned char* chars = body
    cdef Py_ssize_t size = len(body)
    cdef bint found
    with nogil:
        # Most texts have fewer arrays and objects than the limit of their depth.
        found = openings(chars, size) > most and exceeds(chars, size, most)
    return found


def decode(text, loads=json.loads, bint strict=False):
    """Returns the value of a JSON text in bytes, as ``loads`` reads it.

    Raises the errors of ``loads``, and ValueError for text that is not JSON or is nested too deep
    (see `is_too_deep`). Large values nested deeper than `DEPTH` are parsed in one step; with
    ``strict``, they raise ValueError. ``loads`` must return lists and dicts, because it also reads
    parts of an array or object. TypeError is raised if it does not, whatever the size of the text.
    """
    if loads(b"{}") != {}:
        raise TypeError("loads must return lists and dicts")
    if is_too_deep(text):
        raise ValueError(f"JSON has more than {DEEPEST} levels")
    return decode_pieces(text, loads, strict, DEPTH)


cdef object decode_pieces(object text, object loads, bint strict, int depth):
    if len(text) <= PIECE:
        return loads(text)
    cdef bytes body = text.encode() if isinstance(text, str) else bytes(text)
    body = body.strip(_BLANKS)
    opening, closing = body[:1], body[len(body) - 1:]
    if (opening, closing) not in ((b"[", b"]"), (b"{", b"}")):
        return loads(body)
    if depth == 0:
        if strict:
            raise ValueError("large JSON is nested too deep")
        return loads(body)
    is_array = opening == b"["
    found = [] if is_array else {}
    cdef const unsigned char* chars = body
    cdef Py_ssize_t at = 1, end = len(body) - 1, stop, size = PIECE
    while True:
        with nogil:
            stop = piece_end(chars, at, end, size)
        piece = body[at:stop]
        if not piece.strip(_BLANKS):
            if at == 1 and stop == end:  # the array or object is empty
                return found
            raise ValueError("an item is missing")
        if stop - at <= 2 * size + 1:  # small items, or an item not much larger than a piece
            part = loads(opening + piece + closing)
            found.extend(part) if is_array else found.update(part)
        elif is_array:
            found.append(decode_pieces(piece, loads, strict, depth - 1))
        else:
            key = _KEY.match(piece)
            if key is None:
                raise ValueError("a member has no name")
            found[loads(key[1])] = decode_pieces(piece[key.end():], loads, strict, depth - 1)
        if stop == end:
            return found
        at = stop + 1
