#!/usr/bin/env python3
"""Every shipped recipe obeys configs/recipe.schema.json, and wrong ones do not. Knows the few keywords that the
schema has (asserted), so that no package is needed. recipe_schema_test.py SOURCE"""

import copy
import json
import pathlib
import sys

import yaml

ROOT = pathlib.Path(sys.argv[1])
KNOWN = {"$schema", "title", "description", "type", "enum", "const", "anyOf", "properties", "required", "items",
         "additionalProperties", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
BOUNDS = {"minimum": lambda v, b: v >= b, "maximum": lambda v, b: v <= b,
          "exclusiveMinimum": lambda v, b: v > b, "exclusiveMaximum": lambda v, b: v < b}


def faults(value, schema, at="recipe"):
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{at} is no {kind}"]
    found = [f"{at}: {word}" for word, holds in BOUNDS.items() if word in schema and not holds(value, schema[word])]
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        found.append(f"{at} is none of those allowed")
    if "anyOf" in schema:
        tried = [faults(value, one, at) for one in schema["anyOf"]]
        found += [] if any(not one for one in tried) else tried[-1]
    if kind == "object":
        found += [f"{at}.{name} is missing" for name in schema.get("required", []) if name not in value]
        for name, inner in value.items():
            known = schema["properties"].get(name)
            found += faults(inner, known, f"{at}.{name}") if known else [f"{at}.{name} is unknown"]
    if kind == "array":
        items = schema["items"]
        if isinstance(items, list) and len(value) != len(items):
            return [f"{at} has {len(value)} entries"]
        for i, inner in enumerate(value):
            found += faults(inner, items[i] if isinstance(items, list) else items, f"{at}[{i}]")
    return found


class Loader(yaml.SafeLoader):
    """1e-3 is a number to ptrain, a text to YAML 1.1."""


Loader.add_implicit_resolver("tag:yaml.org,2002:float", __import__("re").compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"),
                             list("-+0123456789"))


def main():
    schema = json.loads((ROOT / "configs" / "recipe.schema.json").read_text())
    recipes = {path.name: yaml.load(path.read_text(), Loader) for path in sorted((ROOT / "recipes").glob("*.yaml"))}
    assert "quickstart.yaml" in recipes
    for name, recipe in recipes.items():
        assert not faults(recipe, schema), (name, faults(recipe, schema))
        print("obeys:", name)
    for wrong in ({"sead": 1}, {"seed": "1"}, {"seed": -1}, {"version": 1.5}, {"precision": "fp31"}, {"precision": False},
                  {"parallel": {"zero": 4}}, {"parallel": {"dp": "many"}}, {"parallel": "none"}, {"shapes": {}},
                  {"optimizer": {"betas": [0.9]}}, {"optimizer": {"betas": [0.9, 1.5]}}, {"data": {"train": [{}]}},
                  {"parallel": {"tp": 0}}, {"checkpoint": {"async": 1}}, {"model": {"hiden_size": 8}}):
        recipe = copy.deepcopy(recipes["quickstart.yaml"])
        recipe.update(wrong)
        assert faults(recipe, schema), wrong
    print("wrong ones are refused")


main()
