"""Human-readable ABIs: Solidity declarations such as ``function f(uint256 a) view returns (bool)``.

The format is that of ethers and viem, with a separate declaration for each struct.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastevm.evm.contracts.codec import DEPTH_LIMIT

# For stripped text. Every part is greedy, so matching takes linear time.
DECLARATION: Final = re.compile(
    r"(function|event|error|constructor|struct|receive|fallback)\b\s*([\w$]*)(.*)", re.S
)
TOKEN: Final = re.compile(r"([(),]|[\w$.]+(?:\[\d*\])*|\[\d*\])")
# most parameters of all declarations of an ABI: structs in structs may multiply without end
PARAMETERS_LIMIT: Final = 100_000
LOCATIONS: Final = ("memory", "calldata", "storage", "payable")
MUTABILITIES: Final = ("pure", "view", "nonpayable", "payable")
VISIBILITIES: Final = ("external", "public", "internal", "private", "virtual", "override")
SHOWN: Final = 80  # characters of a declaration in an error

Json = dict[str, Any]


def json_abi(items: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Returns the items in JSON form. Parses items that are texts. Raises ValueError."""
    structs = {
        found[2]: found[3]
        for item in items
        if isinstance(item, str) and (found := declaration(item)) and found[1] == "struct"
    }
    budget = Budget()
    read = [parsed(item, structs, budget) if isinstance(item, str) else item for item in items]
    return [item for item in read if item is not None]


def declaration(text: str) -> re.Match[str] | None:
    """Splits a declaration into its kind, its name and the text after the name."""
    return DECLARATION.fullmatch(text.strip().removesuffix(";"))


class Budget:
    """The number of parameters that may still be parsed."""

    def __init__(self) -> None:
        self.left = PARAMETERS_LIMIT


def parsed(text: str, structs: Mapping[str, str], budget: Budget) -> Json | None:
    """Returns the item of one declaration, or None for a struct."""
    found = declaration(text)
    if found is None:
        raise ValueError(f"not a declaration of an ABI: {text[:SHOWN]!r}")
    kind, name, rest = found.groups()
    if kind == "struct":
        return None
    reader = Reader(text, rest, structs, budget)
    item: Json = {"type": kind, "name": name}
    item["inputs"] = reader.parameters()
    words = reader.words()
    if kind == "function":
        item["outputs"] = reader.parameters() if words[-1:] == ["returns"] else []
    if kind in ("event", "error"):
        item["anonymous"] = "anonymous" in words
    else:
        item["stateMutability"] = next((w for w in words if w in MUTABILITIES), "nonpayable")
    if kind in ("constructor", "receive", "fallback"):
        del item["name"]
    reader.end()
    return item


class Reader:
    """Reads a declaration token by token."""

    def __init__(
        self, text: str, rest: str, structs: Mapping[str, str], budget: Budget, depth: int = 0
    ) -> None:
        self.text, self.structs, self.budget, self.depth = text, structs, budget, depth
        self.tokens = TOKEN.findall(rest)
        if others := TOKEN.sub(" ", rest).split():
            raise self.wrong(f"unexpected {others[0][:SHOWN]!r}")
        if depth > len(structs):
            raise self.wrong("a struct contains itself")
        if depth > DEPTH_LIMIT:
            raise self.wrong(f"more than {DEPTH_LIMIT} levels of structs")
        self.at = self.level = 0

    def wrong(self, why: str) -> ValueError:
        """Returns the error for this declaration."""
        return ValueError(f"{why} in {self.text[:SHOWN]!r}")

    def next(self) -> str:
        """Returns the next token, or an empty text at the end."""
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def words(self) -> list[str]:
        """Returns the words up to a parenthesis or the end."""
        found = []
        while self.at < len(self.tokens) and self.tokens[self.at] not in "(),":
            found.append(self.next())
        known = (*MUTABILITIES, *VISIBILITIES, "anonymous", "returns")
        for word in found:
            if word not in known:
                raise self.wrong(f"unknown word {word!r}")
        return found

    def end(self) -> None:
        """Raises ValueError if tokens remain."""
        if self.at < len(self.tokens):
            raise self.wrong(f"unexpected {self.tokens[self.at]!r}")

    def parameters(self) -> list[Json]:
        """Reads parameters in parentheses."""
        if self.next() != "(":
            raise self.wrong("expected '('")
        self.level += 1
        if self.level > DEPTH_LIMIT:
            raise self.wrong(f"more than {DEPTH_LIMIT} levels of tuples")
        found: list[Json] = []
        if self.tokens[self.at : self.at + 1] == [")"]:
            self.at += 1
            self.level -= 1
            return found
        while True:
            found.append(self.parameter())
            token = self.next()
            if token == ")":
                self.level -= 1
                return found
            if token != ",":
                raise self.wrong("expected ',' or ')'")

    def parameter(self) -> Json:
        """Reads a type and a name."""
        self.budget.left -= 1
        if self.budget.left < 0:
            raise self.wrong(f"more than {PARAMETERS_LIMIT} parameters, with those of structs,")
        first = self.tokens[self.at : self.at + 1]
        if first == ["tuple"] or first == ["("]:
            self.at += first == ["tuple"]
            found = self.tuple_of(self.parameters())
        else:
            found = self.named_type(self.next())
        while self.at < len(self.tokens) and self.tokens[self.at] not in "(),":
            word = self.next()
            if word == "indexed":
                found["indexed"] = True
            elif word not in LOCATIONS:
                if "name" in found:
                    raise self.wrong(f"unexpected {word!r}")
                found["name"] = word
        return {"name": "", **found}

    def tuple_of(self, components: list[Json]) -> Json:
        """Reads the array suffix after the closing parenthesis of a tuple."""
        suffix = ""
        while self.tokens[self.at : self.at + 1] and self.tokens[self.at].startswith("["):
            suffix += self.next()
        return {"type": "tuple" + suffix, "components": components}

    def named_type(self, text: str) -> Json:
        """Returns the type of this name: an elementary type, or a struct."""
        base, bracket, rest = text.partition("[")
        if not base or not base[0].isalpha():
            raise self.wrong("expected a type")
        if base not in self.structs:
            usual = {"uint": "uint256", "int": "int256"}
            return {"type": usual.get(base, base) + bracket + rest}
        body = self.structs[base].strip().removeprefix("{").removesuffix("}")
        inside = ",".join(part for part in body.split(";") if part.strip())
        reader = Reader(self.text, f"({inside})", self.structs, self.budget, self.depth + 1)
        return {"type": "tuple" + bracket + rest, "components": reader.parameters()}
