# SPDX-License-Identifier: Apache-2.0
"""Validates JSON against the part of JSON Schema 2020-12 that docs/reference/json uses.

A keyword outside that part is an error of the schema, so that nothing is passed over in silence.
"""
import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs/reference/json"

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
ANNOTATIONS = {"$schema", "$defs", "title", "description"}


class Invalid(AssertionError):
    """A value is not as its schema says."""


def load(name):
    """The schema of a form: "check" for docs/reference/json/check.schema.json."""
    return json.loads((FOLDER / f"{name}.schema.json").read_text())


def validate(value, schema):
    """Raises Invalid, naming the place, unless the value is as the schema says."""
    _check(value, schema, schema, "$")


def _is_type(value, name):
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    return isinstance(value, TYPES[name])


def _same(a, b):
    return type(a) is type(b) and a == b  # True is not 1


def _check(value, schema, root, place):
    for keyword, argument in schema.items():
        if keyword not in ANNOTATIONS:
            if keyword not in KEYWORDS:
                raise ValueError(f"{place}: the schema uses '{keyword}', which is not supported")
            KEYWORDS[keyword](value, argument, schema, root, place)


def _type(value, argument, _schema, _root, place):
    names = argument if isinstance(argument, list) else [argument]
    if not any(_is_type(value, name) for name in names):
        raise Invalid(f"{place}: {value!r} is not of type {' or '.join(names)}")


def _properties(value, argument, _schema, root, place):
    if isinstance(value, dict):
        for name, schema in argument.items():
            if name in value:
                _check(value[name], schema, root, f"{place}.{name}")


def _required(value, argument, _schema, _root, place):
    if isinstance(value, dict):
        for name in argument:
            if name not in value:
                raise Invalid(f"{place}: '{name}' is missing")


def _additional(value, argument, schema, root, place):
    if not isinstance(value, dict):
        return
    for name in value.keys() - schema.get("properties", {}).keys():
        if argument is False:
            raise Invalid(f"{place}: '{name}' is not expected")
        if argument is not True:
            _check(value[name], argument, root, f"{place}.{name}")


def _items(value, argument, _schema, root, place):
    if isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, argument, root, f"{place}[{index}]")


def _enum(value, argument, _schema, _root, place):
    if not any(_same(value, allowed) for allowed in argument):
        raise Invalid(f"{place}: {value!r} is none of {argument}")


def _const(value, argument, _schema, _root, place):
    if not _same(value, argument):
        raise Invalid(f"{place}: {value!r} is not {argument!r}")


def _ref(value, argument, _schema, root, place):
    prefix = "#/$defs/"
    if not argument.startswith(prefix):
        raise ValueError(f"{place}: the schema refers to '{argument}', which is not supported")
    _check(value, root["$defs"][argument[len(prefix):]], root, place)


def _one_of(value, argument, _schema, root, place):
    faults = []
    for schema in argument:
        try:
            _check(value, schema, root, place)
        except Invalid as fault:
            faults.append(str(fault))
    fits = len(argument) - len(faults)
    if fits != 1:
        raise Invalid(f"{place}: {fits} of {len(argument)} forms fit: {'; '.join(faults)}")


def _minimum(value, argument, _schema, _root, place):
    if _is_type(value, "number") and value < argument:
        raise Invalid(f"{place}: {value} is below {argument}")


KEYWORDS = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "enum": _enum,
    "const": _const,
    "$ref": _ref,
    "oneOf": _one_of,
    "minimum": _minimum,
}
