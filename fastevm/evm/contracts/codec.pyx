"""The contract ABI: types are compiled once, values are encoded and decoded without Python tables.

Source: the Solidity contract ABI specification. Encoding is canonical. Decoding is strict: padding
must be zero, numbers must fit their types, and offsets must lie within the data.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.number cimport PyNumber_Index
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free, buffer_reserve
from fastevm.core.primitives.bytes_like cimport address_bytes, bytes_like
from fastevm.core.primitives.hex cimport hex_checksum
from fastevm.core.primitives.intrinsics cimport load64_big, store64_big

import re
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import SupportsIndex

from fastevm.core.primitives.located import shown
from fastevm.errors import FastevmError


cdef enum:
    WORD = 32
    LIST_LIMIT = 65536        # most items of a list whose items take no bytes, such as empty tuples
    HEAD_LIMIT = 1 << 30      # most bytes of a static type
    PLACES_LIMIT = 80         # most decimal places of a fixed-point number
    READS = 4                 # most reads per byte of data

DEPTH_LIMIT = 64  # most levels of lists, tuples and structs, in every form of an ABI
ARRAY = re.compile(r"(.*)\[([0-9]*)\]", re.S)
ELEMENTARY = re.compile(r"(uint|int|bytes|ufixed|fixed)([1-9][0-9]{0,2})?(?:x(0|[1-9][0-9]?))?")
EXACT = Context(prec=100)


class AbiEncodingError(FastevmError, ValueError):
    """A value does not fit its ABI type. The message names the argument."""


class AbiDecodingError(FastevmError, ValueError):
    """The data do not match the ABI types."""


class AbiTypeError(FastevmError, ValueError):
    """The contract ABI has no such type, or the type is too large or too deep."""


def too_deep() -> AbiTypeError:
    """Returns the error for a type with too many levels."""
    return AbiTypeError(f"a type of more than {DEPTH_LIMIT} levels of lists and tuples")


cdef int must(bint done) except -1:
    if not done:
        raise MemoryError
    return 0


cdef uint8_t* zeros(Buffer* out, Py_ssize_t size) except NULL:
    """Appends zero bytes and returns a pointer to them."""
    cdef uint8_t* at
    must(buffer_reserve(out, out.size + <size_t>size + 1))
    at = out.bytes + out.size
    memset(at, 0, <size_t>size)
    out.size += <size_t>size
    return at


cdef inline void put_small(uint8_t* word, uint64_t value) noexcept:
    store64_big(word + 24, value)


cdef inline bint is_zero(const uint8_t* data, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    cdef uint8_t found = 0
    for i in range(size):
        found |= data[i]
    return found == 0


cdef Py_ssize_t small_word(const uint8_t* data, Py_ssize_t size, Py_ssize_t at) except -1:
    """Reads an offset or a length. Raises AbiDecodingError if it exceeds the size of the data."""
    cdef uint64_t value
    if at < 0 or at > size - WORD:
        raise AbiDecodingError(f"the data ends before byte {at + WORD}: it has {size} bytes")
    value = load64_big(data + at + 24)
    if not is_zero(data + at, 24) or value > <uint64_t>size:
        raise AbiDecodingError(f"an offset or a length at byte {at} exceeds the data")
    return <Py_ssize_t>value


cdef class AbiType:
    """A compiled ABI type.

    ``text``: the name as in signatures, or ``tuple``. For a tuple, ``members`` are pairs of a name
    and an `AbiType`, and ``make`` creates the decoded tuple from its values.
    """

    def __init__(self, str text, list members=None, object make=None) -> None:
        found = ARRAY.fullmatch(text)
        if found:
            if text.count("[") > DEPTH_LIMIT:  # before the recursion
                raise too_deep()
            self.kind = ABI_LIST
            self.item = AbiType(found[1], members, make)
            self.set_depth(self.item.depth + 1)
            self.set_length(found[2])
            self.name = f"{self.item.name}[{found[2]}]"
            return
        self.head = WORD
        if text == "tuple":
            self.set_members(members or [], make)
        else:
            self.set_elementary(text)

    cdef int set_depth(self, int depth) except -1:
        """Raises AbiTypeError beyond DEPTH_LIMIT: encoding and decoding call themselves."""
        if depth > DEPTH_LIMIT:
            raise too_deep()
        self.depth = depth
        return 0

    def set_length(self, digits: str) -> None:
        """Sets the number of items and the size of a list type. No digits: any number."""
        if len(digits) > 10 or int(digits or 0) * max(self.item.head, 1) > HEAD_LIMIT:
            raise AbiTypeError(f"a list of {digits[:20]} items is larger than {HEAD_LIMIT} bytes")
        self.length = int(digits) if digits else -1
        self.is_dynamic = self.length < 0 or (self.item.is_dynamic and self.length > 0)
        self.head = WORD if self.is_dynamic else self.length * self.item.head

    def set_members(self, members: list[tuple[str, AbiType]], make: object) -> None:
        """Makes this the type of a tuple with these members."""
        cdef AbiType member
        self.kind, self.make = ABI_TUPLE, make
        self.labels = [label for label, _ in members]
        self.members = [member for _, member in members]
        self.set_depth(1 + max([(<AbiType>member).depth for member in self.members], default=0))
        self.name = f"({','.join([member.name for member in self.members])})"
        self.is_dynamic = any([member.is_dynamic for member in self.members])
        head = WORD if self.is_dynamic else sum([member.head for member in self.members])
        if head > HEAD_LIMIT:
            raise AbiTypeError(f"a tuple of {head} bytes, more than {HEAD_LIMIT}")
        self.head = head

    def set_elementary(self, text: str) -> None:
        """Makes this the type without members that ``text`` names. Raises AbiTypeError if there is
        no such type.
        """
        usual = {"uint": "uint256", "int": "int256", "fixed": "fixed128x18",
                 "ufixed": "ufixed128x18", "function": "bytes24"}
        self.name = text if text == "function" else usual.get(text, text)
        simple = {"bool": ABI_BOOL, "address": ABI_ADDRESS, "bytes": ABI_BYTES,
                  "string": ABI_STRING}
        if text in simple:
            self.kind = simple[text]
            self.is_dynamic = text in ("bytes", "string")
            return
        found = ELEMENTARY.fullmatch(usual.get(text, text))
        kind, size, places = found.groups() if found else ("", "", "")
        self.size, self.places = int(size or 0), int(places or 0)
        if kind == "bytes" and 1 <= self.size <= 32 and not places:
            self.kind = ABI_FIXED_BYTES
        elif (
            self.size % 8 or not 8 <= self.size <= 256 or (places is None) == ("fixed" in kind)
            or self.places > PLACES_LIMIT
        ):
            raise AbiTypeError(f"unknown ABI type {shown(text)}")
        elif "fixed" in kind:
            self.kind = ABI_FIXED if kind == "fixed" else ABI_UFIXED
        else:
            self.kind = ABI_INT if kind == "int" else ABI_UINT

    def __repr__(self) -> str:
        return f"<ABI type {self.name}>"

    cdef object wrong(self, object value, str expected):
        return AbiEncodingError(f"{self.name}: expected {expected}, found {shown(value)}")

    # --- encoding ---

    cdef int put(self, Buffer* out, object value) except -1:
        """Appends a value: its head part if the type is static, else its tail part."""
        if self.kind == ABI_UINT or self.kind == ABI_INT:
            return self.put_number(out, value)
        if self.kind == ABI_ADDRESS:
            if not isinstance(value, bytes):
                value = getattr(value, "address", value)
            try:
                raw = address_bytes(value, "address")
            except (ValueError, TypeError) as error:
                raise AbiEncodingError(str(error)) from None
            memcpy(zeros(out, WORD) + 12, PyBytes_AS_STRING(raw), 20)
            return 0
        if self.kind == ABI_BOOL:
            if value is not True and value is not False:
                raise self.wrong(value, "a bool")
            put_small(zeros(out, WORD), value is True)
            return 0
        if self.kind == ABI_LIST:
            return self.put_list(out, value)
        if self.kind == ABI_TUPLE:
            return self.put_members(out, value)
        if self.kind == ABI_FIXED or self.kind == ABI_UFIXED:
            return self.put_number(out, self.scaled(value))
        return self.put_data(out, value)

    cdef object indexed(self, object value):
        """Returns an int, from an object with __index__ such as an integer of numpy."""
        try:
            if not isinstance(value, bool):
                return PyNumber_Index(value)
        except TypeError:
            pass
        raise self.wrong(value, "an int")

    def scaled(self, value: object) -> int:
        """Returns a fixed-point number as an int."""
        if isinstance(value, bool) or not isinstance(value, SupportsIndex | Decimal):
            raise self.wrong(value, "a Decimal or an int")
        if not isinstance(value, Decimal):
            value = self.indexed(value)
        number = Decimal(value).scaleb(self.places, context=EXACT)
        if not number.is_finite() or number != number.to_integral_value():
            raise self.wrong(value, f"at most {self.places} decimal places")
        return int(number)

    cdef int put_number(self, Buffer* out, object value) except -1:
        cdef bint signed = self.kind == ABI_INT or self.kind == ABI_FIXED
        cdef int beyond = 0
        cdef int64_t small
        cdef uint8_t* word
        cdef bytes raw
        if not PyLong_Check(value) or isinstance(value, bool):
            value = self.indexed(value)
        small = PyLong_AsLongLongAndOverflow(value, &beyond)
        if beyond == 0 and (small >= 0 or signed):
            if self.size > 64 or fits(small, self.size, signed):
                word = zeros(out, WORD)
                if small < 0:
                    memset(word, 0xff, WORD)
                put_small(word, <uint64_t>small)
                return 0
        bits = self.size - 1 if signed else self.size
        if not (-(1 << bits) if signed else 0) <= value < 1 << bits:
            lowest = f"-2**{bits}" if signed else "0"
            raise self.wrong(value, f"{lowest} to 2**{bits} - 1")
        raw = value.to_bytes(WORD, "big", signed=signed)
        return must(buffer_append(out, PyBytes_AS_STRING(raw), WORD))

    cdef int put_data(self, Buffer* out, object value) except -1:
        """Appends bytes or text."""
        cdef bytes raw
        cdef Py_ssize_t size
        cdef uint8_t* at
        try:
            if self.kind == ABI_STRING and isinstance(value, str):
                raw = (<str>value).encode()
            elif self.kind == ABI_STRING and not isinstance(value, bytes):
                raise self.wrong(value, "text")
            else:
                raw = bytes_like(value, self.name)
        except (ValueError, TypeError) as error:
            raise AbiEncodingError(str(error)) from None
        size = PyBytes_GET_SIZE(raw)
        if self.kind == ABI_FIXED_BYTES:
            if size > self.size:
                raise self.wrong(value, f"at most {self.size} bytes")
            memcpy(zeros(out, WORD), PyBytes_AS_STRING(raw), <size_t>size)
            return 0
        at = zeros(out, WORD + (size + WORD - 1) // WORD * WORD)
        put_small(at, <uint64_t>size)
        memcpy(at + WORD, PyBytes_AS_STRING(raw), <size_t>size)
        return 0

    cdef int put_list(self, Buffer* out, object value) except -1:
        cdef list items
        cdef Py_ssize_t i, mark, count
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise self.wrong(value, "a sequence")
        items = list(value)
        count = len(items)
        if self.length >= 0 and count != self.length:
            raise self.wrong(value, f"{self.length} items")
        if self.length < 0:
            put_small(zeros(out, WORD), <uint64_t>count)
        mark = <Py_ssize_t>out.size
        if self.item.is_dynamic:
            zeros(out, count * WORD)
        for i in range(count):
            if self.item.is_dynamic:
                put_small(out.bytes + mark + i * WORD, out.size - <uint64_t>mark)
            try:
                self.item.put(out, items[i])
            except AbiEncodingError as error:
                raise AbiEncodingError(f"[{i}]: {error}") from None
        return 0

    cdef int put_members(self, Buffer* out, object values) except -1:
        cdef AbiType member
        cdef Py_ssize_t mark = <Py_ssize_t>out.size, at = mark, i = 0, count = len(self.members)
        cdef object given = self.member_values(values)
        try:
            for i in range(count):  # the head: static values, and room for offsets
                member = <AbiType>self.members[i]
                if member.is_dynamic:
                    zeros(out, WORD)
                else:
                    member.put(out, given[i])
            for i in range(count if self.is_dynamic else 0):  # the tail
                member = <AbiType>self.members[i]
                if member.is_dynamic:
                    put_small(out.bytes + at, out.size - <uint64_t>mark)
                    member.put(out, given[i])
                at += member.head
        except AbiEncodingError as error:
            raise AbiEncodingError(f"{self.labels[i] or i}: {error}") from None
        return 0

    def member_values(self, values: object) -> object:
        """Returns the values of a tuple in order, from a sequence or a mapping by name."""
        if isinstance(values, tuple | list):
            given = values
        elif isinstance(values, Mapping):
            unknown = [name for name in values if name not in self.labels]
            missing = [name for name in self.labels if name not in values]
            if unknown or missing:
                named = f"no member {unknown[0]!r}" if unknown else f"a member {missing[0]!r}"
                raise AbiEncodingError(f"{self.name}: it has {named}")
            return [values[name] for name in self.labels]
        else:
            raise self.wrong(values, "a sequence or a mapping")
        if len(given) != len(self.members):
            raise self.wrong(values, f"{len(self.members)} values")
        return given

    # --- decoding ---

    cdef object get(self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left):
        """Reads the value whose head or tail part is at offset ``at``."""
        left.values -= 1
        if left.values < 0:
            raise repetitive()
        if self.kind == ABI_TUPLE:
            return self.finished(self.get_members(data, size, at, left))
        if self.kind == ABI_LIST:
            return self.get_list(data, size, at, left)
        if self.kind == ABI_BYTES or self.kind == ABI_STRING:
            return self.get_data(data, size, at, left)
        if at > size - WORD:
            raise AbiDecodingError(f"the data ends before byte {at + WORD}: it has {size} bytes")
        return self.get_word(data + at)

    cdef object finished(self, tuple values):
        return values if self.make is None else self.make(values)

    cdef object get_word(self, const uint8_t* word):
        cdef int spare = WORD - self.size // 8
        cdef char[42] letters
        cdef bint negative
        if self.kind == ABI_UINT:
            if is_zero(word, spare):
                if is_zero(word, 24):
                    return load64_big(word + 24)
                return int.from_bytes(word[:WORD], "big")
        elif self.kind == ABI_ADDRESS:
            if is_zero(word, 12):
                letters[0], letters[1] = c"0", c"x"
                hex_checksum(letters + 2, word + 12)
                return PyUnicode_DecodeUTF8(letters, 42, NULL)
        elif self.kind == ABI_BOOL:
            if is_zero(word, WORD - 1) and word[WORD - 1] < 2:
                return word[WORD - 1] == 1
        elif self.kind == ABI_FIXED_BYTES:
            if is_zero(word + self.size, WORD - self.size):
                return word[:self.size]
        elif self.kind == ABI_INT or self.kind == ABI_FIXED or self.kind == ABI_UFIXED:
            negative = self.kind != ABI_UFIXED and word[spare] >= 0x80
            if is_filled(word, spare, 0xff if negative else 0):
                number = int.from_bytes(word[:WORD], "big", signed=negative)
                if self.kind == ABI_INT:
                    return number
                return Decimal(number).scaleb(-self.places, context=EXACT)
        raise AbiDecodingError(f"0x{word[:WORD].hex()} is not a value of {self.name}")

    cdef object get_data(
        self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left
    ):
        cdef Py_ssize_t count = small_word(data, size, at), start = at + WORD
        cdef Py_ssize_t whole = (count + WORD - 1) // WORD * WORD
        if whole > size - start:
            raise AbiDecodingError(f"the data ends before byte {start + whole}: it has {size} bytes")
        left.bytes -= whole
        if left.bytes < 0:
            raise repetitive()
        if not is_zero(data + start + count, whole - count):
            raise AbiDecodingError(f"the padding of {self.name} at byte {start + count} is not zero")
        if self.kind == ABI_BYTES:
            return PyBytes_FromStringAndSize(<const char*>data + start, count)
        try:
            return PyUnicode_DecodeUTF8(<const char*>data + start, count, NULL)
        except UnicodeDecodeError as error:
            raise AbiDecodingError(f"a string is not UTF-8: {error}") from None

    cdef object get_list(
        self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left
    ):
        cdef AbiType item = self.item
        cdef Py_ssize_t count = self.length, _i, offset, base
        if count < 0:
            count = small_word(data, size, at)
            at += WORD
        base = at
        if item.head and count > (size - at) // item.head:
            raise AbiDecodingError(f"a list of {count} items does not fit the data")
        if not item.head and count > LIST_LIMIT:
            raise AbiDecodingError(f"a list has {count} empty items, more than {LIST_LIMIT}")
        found = []
        for _i in range(count):
            if item.is_dynamic:
                offset = small_word(data, size, at)
                found.append(item.get(data, size, base + offset, left))
            else:
                found.append(item.get(data, size, at, left))
            at += item.head
        return found

    cdef tuple get_members(
        self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left
    ):
        cdef Py_ssize_t base = at, i, count = len(self.members), place
        cdef AbiType member
        cdef tuple found = PyTuple_New(count)
        for i in range(count):
            member = <AbiType>self.members[i]
            place = base + small_word(data, size, at) if member.is_dynamic else at
            value = member.get(data, size, place, left)
            Py_INCREF(value)
            PyTuple_SET_ITEM(found, i, value)
            at += member.head
        return found


def repetitive() -> AbiDecodingError:
    """Returns the error for data whose offsets point to the same bytes too often."""
    return AbiDecodingError("the data refers to itself too often")


cdef bint fits(int64_t value, int bits, bint signed) noexcept:
    """Whether a number fits a type of at most 64 bits."""
    if bits == 64:
        return signed or value >= 0
    if signed:
        return -(<int64_t>1 << (bits - 1)) <= value < <int64_t>1 << (bits - 1)
    return 0 <= value < <int64_t>1 << bits


cdef bint is_filled(const uint8_t* data, Py_ssize_t size, uint8_t byte) noexcept:
    cdef Py_ssize_t i
    for i in range(size):
        if data[i] != byte:
            return False
    return True


cdef bytes encode_after(AbiType inputs, bytes prefix, object values):
    """Returns the prefix and the encoded values."""
    cdef Buffer out
    memset(&out, 0, sizeof(out))
    try:
        must(buffer_append(&out, PyBytes_AS_STRING(prefix), <size_t>PyBytes_GET_SIZE(prefix)))
        inputs.put_members(&out, values)
        return PyBytes_FromStringAndSize(<const char*>out.bytes, <Py_ssize_t>out.size)
    finally:
        buffer_free(&out)


cdef tuple decode_members(AbiType outputs, bytes data, Py_ssize_t start):
    """Decodes the values of a tuple, which begins at offset ``start``."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data) - start
    cdef DecodeBudget left = DecodeBudget(size // 8 + LIST_LIMIT, READS * size)
    if size < 0:
        raise AbiDecodingError(f"the data has {PyBytes_GET_SIZE(data)} bytes")
    return outputs.get_members(<const uint8_t*>PyBytes_AS_STRING(data) + start, size, 0, &left)


def encode_values(AbiType types not None, values: object, bytes prefix=b"") -> bytes:
    """Encodes the values of a tuple type. Raises AbiEncodingError, which names the value."""
    return encode_after(types, prefix, values)


def decode_values(AbiType types not None, data: object, Py_ssize_t start=0) -> tuple[object, ...]:
    """Decodes the values of a tuple type. Raises AbiDecodingError."""
    return decode_members(types, bytes_like(data, "data"), start)


def decode_column(AbiType kind not None, words: object) -> list[object]:
    """Decodes a static value from each item of ``words``. An item has 32 bytes."""
    cdef bytes word
    cdef DecodeBudget left = DecodeBudget(0, 0)
    found = []
    for word in words:
        left = DecodeBudget(WORD, 0)
        found.append(
            kind.get(<const uint8_t*>PyBytes_AS_STRING(word), PyBytes_GET_SIZE(word), 0, &left)
        )
    return found
