"""The worked examples of docs/vectors, recomputed by the Python peer.

`python3 Tests/InteropTests/vectors.py` prints each example and whether it is reproduced.
"""

import glob
import json
import os
import re
import sys

import examples_channel
import examples_links
from examples import INPUTS, Given

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


def blocks():
    """Name and bytes of each hex block; what follows a # is a comment."""
    text = ""
    for path in sorted(glob.glob(os.path.join(DOCS, "vectors", "*.md"))):
        with open(path, encoding="utf-8") as file:
            text += file.read()
    found = re.findall(r"```hex ([a-z0-9-]+)\n(.*?)```", text, re.DOTALL)
    return {name: bytes.fromhex("".join(line.partition("#")[0] for line in body.splitlines()))
            for name, body in found}


def files():
    """Name and expected bytes of each example for programs."""
    result = {}
    for path in sorted(glob.glob(os.path.join(DOCS, "vectors", "*.json"))):
        with open(path, encoding="utf-8") as file:
            result |= {one["name"]: bytes.fromhex(one["expected"])
                       for one in json.load(file).get("vectors", [])}
    return result


def cases(name):
    """The cases of behaviour in a file."""
    with open(os.path.join(DOCS, "vectors", name + ".json"), encoding="utf-8") as file:
        return json.load(file)["cases"]


def computed():
    """Every example as the Python peer makes it from the inputs of the document."""
    given, result = Given(blocks()), {}
    for part in (*examples_links.PARTS, *examples_channel.PARTS):
        result |= part(given)
    return result


def compare(expected):
    """(names that are reproduced, defects of the others)"""
    made = computed()
    good, wrong = [], []
    for name, value in expected.items():
        if name in INPUTS:
            continue
        if name not in made:
            wrong.append(f"{name}: expected to be computed here, saw nothing that does")
        elif made[name] != value:
            wrong.append(f"{name}: expected {value.hex()}, saw {made[name].hex()}")
        else:
            good.append(name)
    wrong += [f"{name}: expected in the documents, saw no such example"
              for name in made.keys() - expected.keys()]
    return good, wrong


if __name__ == "__main__":
    is_wrong = False
    for source in (blocks, files):
        reproduced, differing = compare(source())
        is_wrong |= bool(differing)
        for line in [f"ok    {one}" for one in reproduced] + [f"FAIL  {one}" for one in differing]:
            print(f"{source.__name__}  {line}")
    sys.exit(is_wrong)
