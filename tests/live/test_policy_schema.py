# SPDX-License-Identifier: GPL-2.0-or-later
"""policies/policy.schema.json, for editors, has exactly the names that gpuq reads."""
import json
import os
import pathlib
import re

import jsonschema
import pytest
import yaml

from clusters import GPUQ, run

POLICIES = pathlib.Path(__file__).resolve().parents[2] / "policies"
SCHEMA = json.loads((POLICIES / "policy.schema.json").read_text())
# A valid file that contains every map.
WHOLE = {
    "version": 1,
    "gpus": {"m": {}},
    "pools": {"p": {"nodes": "n1", "gpus": "m:4", "owner": "q", "lend": {"when": {"days": "sat"}},
                    "shares": {"per_gpu": 4}, "when": {"from": "08:00"}}},
    "queues": {"q": {"time": "2h", "pools": "p", "per_gpu": {}, "allow": {"users": "a"}, "wait": {}, "chain": {},
                     "idle": {"after": "30m"}, "extend": {"by": "1h"},
                     "calendar": [{"when": {"days": "sat"}, "time": "4h",
                                   "limits": {"user": {}, "account": {}, "all": {}, "job": {}}}],
                     "limits": {"user": {}, "account": {}, "all": {}, "job": {}}}},
    "fair_share": {},
    "site": {},
    "sweeps": {"max_workers": 8, "max_share": "50%"},
    "reserve": {"users": "a"},
    "helper": "gpuq",
    "help_desk": {"users": "a", "may": ["stop"]},
    "publish": {"names": ["labs"], "least_users": 3},
    "courses": {"c": {"nodes": "n1", "start": "2026-11-03T13:00", "duration": "1h", "users": "a"}},
    "tests": [{"job": {}, "expect": {"queue": "q"}}],
}


class PlainLoader(yaml.SafeLoader):
    """Keeps dates as text, as schemas in editors see them."""


PlainLoader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for key, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def places(node, way=()):
    """Paths of all maps with names defined by gpuq, not by the site."""
    if isinstance(node, dict) and way not in (("gpus",), ("pools",), ("queues",), ("courses",)):
        yield way
    for key, value in node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else ()):
        yield from places(value, (*way, key))


def schema_at(way):
    schema = SCHEMA
    for step in way:
        if isinstance(step, int):
            schema = schema["items"]
        else:
            schema = schema.get("properties", {}).get(step) or schema["additionalProperties"]
        while "$ref" in schema or "anyOf" in schema and "properties" not in schema:
            schema = SCHEMA["$defs"][(schema if "$ref" in schema else schema["anyOf"][0])["$ref"].rpartition("/")[2]]
    return schema


@pytest.mark.parametrize("way", list(places(WHOLE)), ids=lambda way: ".".join(map(str, way)) or "top")
def test_every_map_has_the_names_that_gpuq_reads(way, tmp_path):
    policy = json.loads(json.dumps(WHOLE))
    place = policy
    for step in way:
        place = place[step]
    place["nonsense"] = 1
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy, sort_keys=False))
    done = run([GPUQ, "policy", "check", str(file)], env=dict(os.environ))
    said = done.stdout + done.stderr
    names = re.search(r"unknown name 'nonsense' in .*; there are: (.*)", said)
    assert names, said
    assert set(names[1].split(", ")) == set(schema_at(way)["properties"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(policy, SCHEMA)


@pytest.mark.parametrize("file", sorted(POLICIES.glob("*.yaml")), ids=lambda file: file.name)
def test_the_shipped_policies_are_valid(file):
    jsonschema.validate(yaml.load(file.read_text(), PlainLoader), SCHEMA)
