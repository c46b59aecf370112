"""Reads the lists that transactions and messages carry: EIP-2930, EIP-4844, EIP-7702."""
from collections.abc import Iterable, Mapping
from re import compile

from fastevm.core.primitives.bytes_like cimport address_bytes, sized_bytes, slot_number
from fastevm.core.primitives.word cimport Word, uint64_from_named, word_from_named


ACCESS_MEMBERS = ("address", "storageKeys")
AUTHORIZATION_MEMBERS = ("chainId", "address", "nonce", "yParity", "r", "s")
LARGEST_PARITY = 255  # EIP-7702: y_parity is below 2**8
is_quantity = compile("0[xX][0-9a-fA-F]{1,64}").fullmatch


cdef list access_list_entries(object entries, str name):
    cdef list found = []
    for entry in items_of(entries, name):
        path = f"{name}[{len(found)}]"
        address, keys = entry_members(entry, ACCESS_MEMBERS, path)
        path_of_keys = f"{path}.storageKeys"
        found.append((
            address_bytes(address, f"{path}.address"),
            tuple([
                word_number(key, f"{path_of_keys}[{i}]")
                for i, key in enumerate(items_of(keys, path_of_keys))
            ]),
        ))
    return found


cdef list authorization_entries(object entries, str name):
    cdef list found = []
    for entry in items_of(entries, name):
        path = f"{name}[{len(found)}]"
        chain_id, address, nonce, y_parity, r, s = entry_members(
            entry, AUTHORIZATION_MEMBERS, path
        )
        nonce = number(nonce, f"{path}.nonce")
        uint64_from_named(nonce, f"{path}.nonce")
        y_parity = word_number(y_parity, f"{path}.yParity")
        if y_parity > LARGEST_PARITY:
            raise OverflowError(f"{path}.yParity does not fit 8 bits")
        found.append((
            word_number(chain_id, f"{path}.chainId"),
            address_bytes(address, f"{path}.address"),
            nonce,
            y_parity,
            word_number(r, f"{path}.r"),
            word_number(s, f"{path}.s"),
        ))
    return found


cdef list hash_entries(object hashes, str name):
    return [
        sized_bytes(item, 32, f"{name}[{i}]") for i, item in enumerate(items_of(hashes, name))
    ]


cdef object items_of(object values, str name):
    """Returns the values. Raises TypeError if they are not iterable, or are text, bytes or a
    mapping.
    """
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, bytearray, Mapping)):
        return values
    raise TypeError(f"{name}: expected a list, found {type(values).__name__}")


cdef tuple entry_members(object entry, tuple names, str path):
    """Returns the members of an entry: a sequence, or a mapping as in JSON-RPC and web3.py."""
    cdef tuple values
    if not isinstance(entry, Mapping):
        values = tuple(items_of(entry, path))
        if len(values) != len(names):
            raise ValueError(f"{path}: expected ({', '.join(names)}), found {len(values)} values")
        return values
    for name in entry:
        if name not in names:
            raise TypeError(f"{path}: unknown member {name!r}, expected {', '.join(names)}")
    for name in names:
        if name not in entry:
            raise TypeError(f"{path}: there is no {name!r}")
    return tuple([entry[name] for name in names])


cdef object number(object value, str name):
    """Returns an int from an int, 32 bytes, or a quantity such as "0x1f" (JSON-RPC)."""
    if isinstance(value, str) and is_quantity(value):
        return int(value, 16)
    return slot_number(value, name)


cdef object word_number(object value, str name):
    """Like `number`. Raises OverflowError if the value does not fit 256 bits."""
    cdef Word word
    value = number(value, name)
    word_from_named(&word, value, name)
    return value
