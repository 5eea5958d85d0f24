#!/usr/bin/python3
"""metrics.py NAME [LABEL=VALUE...]: read Prometheus text on stdin with
Prometheus' own parser, and print the value of the one sample with that name
and these labels; "none" where there is none.  Fails on text that is not
valid."""

import sys

from prometheus_client.parser import text_string_to_metric_families

name = sys.argv[1]
labels = dict(argument.split("=", 1) for argument in sys.argv[2:])
values = []
for family in text_string_to_metric_families(sys.stdin.read()):
    if family.type != "gauge" or not family.documentation:
        sys.exit(f"{family.name}: no type, or no help")
    values += [
        sample.value
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
if len(values) > 1:
    sys.exit(f"{name}: {len(values)} samples")
print(f"{values[0]:g}" if values else "none")
