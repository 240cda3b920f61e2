"""Answers for whoever asks: ctxeval by script, others by whatever schema their request bears."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

ITEMS = 3
"""How many items a list gets."""

REASON = "The text states the fact that the answer rests on; the rest of it is background."

Schema = Mapping[str, Any]


def answer(body: Mapping[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
    """Answer a request: with a text, or with calls of a tool."""
    if tools := body.get("tools"):
        function = tools[0]["function"]
        said = json.dumps(_Filler(body).fill(function["parameters"]))
        called = {"name": function["name"], "arguments": said}
        return None, [{"id": "call-1", "type": "function", "function": called}]
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        text = "\n".join(str(message["content"]) for message in body["messages"])
        schema = max(_schemas(text), key=lambda one: len(str(one)), default=None)
    if schema is None:
        return json.dumps({"verdict": 1, "reason": REASON}), []
    return json.dumps(_Filler(body).fill(schema)), []


class _Filler:
    """Fills a schema; of the verdicts three in five are positive, by a hash of the request."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._seed = json.dumps(body["messages"])
        self._count = 0

    def fill(self, schema: Schema) -> Any:
        return self._fill(schema, schema, "")

    def _fill(self, schema: Schema, root: Schema, name: str) -> Any:
        if "$ref" in schema:
            found = root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            return self._fill(found, root, name)
        if "anyOf" in schema:
            return self._fill(schema["anyOf"][0], root, name)
        if "enum" in schema:
            return schema["enum"][0 if self._positive() else -1]
        kind = schema.get("type")
        if "properties" in schema:
            return {key: self._fill(s, root, key) for key, s in schema["properties"].items()}
        if kind == "array":
            return [self._fill(schema["items"], root, name) for _ in range(ITEMS)]
        if kind in ("integer", "number", "boolean"):
            return {"boolean": bool}.get(kind, int)(self._positive())
        if name == "verdict":
            return "yes" if self._positive() else "no"
        return REASON if "reason" in name else f"This is {name} number {self._count}."

    def _positive(self) -> bool:
        self._count += 1
        return sha256(f"{self._seed}{self._count}".encode()).digest()[0] < 154


def _schemas(text: str) -> Iterator[Schema]:
    """Find the schemas that a prompt shows."""
    decoder = json.JSONDecoder()
    position = 0
    while match := re.compile(r"\{").search(text, position):
        try:
            found, position = decoder.raw_decode(text, match.start())
        except ValueError:
            position = match.end()
            continue
        if isinstance(found, dict) and isinstance(found.get("properties"), dict):
            yield found
