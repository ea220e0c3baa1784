#!/usr/bin/env python3
"""Checks that trace_rules.py finds each kind of fault."""

import json
import unittest

import trace_rules

NAME = {"name": "process_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "rank 0"}}
TRACK = {"name": "thread_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "application"}}


def slice_at(start, length, **others):
    """An event of rank 0."""
    return {"name": "STEP", "ph": "X", "pid": 0, "tid": 1, "ts": start, "dur": length, **others}


class TraceRulesTest(unittest.TestCase):
    """Each test changes a valid trace."""

    def problems(self, *events):
        """Returns the faults of a trace of rank 0 with these events."""
        return list(trace_rules.problems_of(json.dumps([NAME, TRACK, *events])))

    def test_nested_slices_are_valid(self):
        """So are slices that touch or have the same times."""
        self.assertEqual(self.problems(
            slice_at(0, 10), slice_at(0, 10), slice_at(2, 3), slice_at(5, 5), slice_at(10, 1),
            slice_at(20, 1, bind_id="1", flow_out=True),
            slice_at(22, 1, bind_id="1", flow_in=True),
            {"name": "IN_FLIGHT", "ph": "C", "pid": 0, "tid": 1, "ts": 1, "args": {"bytes": 3}}), [])

    def test_faults_are_named(self):
        """Each trace has one fault."""
        for events, problem in (
                ([slice_at(0, 10), slice_at(5, 10)], "STEP at 5 begins in STEP and ends after it"),
                ([slice_at(0, -1)], "'dur' is -1"),
                ([slice_at(0, 1, tid=0)], "track 0"),
                ([slice_at("now", 1)], "'ts' is 'now'"),
                ([slice_at(-1, 1)], "'ts' is -1"),
                ([slice_at(0, "long")], "'dur' is 'long'"),
                ([slice_at(0, 1, tid=7)], "process 0, track 7 has no name"),
                ([slice_at(5, 1, bind_id="1", flow_out=True),
                  slice_at(1, 1, bind_id="1", flow_in=True)], "flow 1 ends before it begins"),
                ([slice_at(0, 1, pid=7)], "process 7 has no name"),
                ([slice_at(0, 1, ph="B")], "phase 'B'"),
                ([slice_at(0, 1, name=None)], "'name' is None"),
                ([slice_at(0, 1, bind_id="1", flow_out=True)], "flow 1 has only flow_out"),
                ([slice_at(0, 1, ph="C", args={"bytes": "many"})], "a counter has the values"),
                ([], "no slices")):
            with self.subTest(problem):
                self.assertIn(problem, "\n".join(self.problems(*events)))

    def test_text_that_is_not_json_is_an_error(self):
        """The error is that of json."""
        for text in ("[{]", '[{"ts": NaN}]'):
            with self.subTest(text), self.assertRaises(ValueError):
                list(trace_rules.problems_of(text))


if __name__ == "__main__":
    unittest.main()
