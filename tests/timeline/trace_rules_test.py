#!/usr/bin/env python3
"""trace_rules.py sees each kind of fault."""

import json
import unittest

import trace_rules

NAME = {"name": "process_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "rank 0"}}
TRACK = {"name": "thread_name", "ph": "M", "pid": 0, "tid": 1, "args": {"name": "application"}}


def slice_at(start, length, **others):
    """An event of rank 0."""
    return {"name": "STEP", "ph": "X", "pid": 0, "tid": 1, "ts": start, "dur": length, **others}


class TraceRulesTest(unittest.TestCase):
    """Each test changes a trace that is right."""

    def problems(self, *events):
        """Of a trace of rank 0."""
        return list(trace_rules.problems_of(json.dumps([NAME, TRACK, *events])))

    def test_what_nests_is_right(self):
        """Also slices that touch, or that have the same times."""
        self.assertEqual(self.problems(
            slice_at(0, 10), slice_at(0, 10), slice_at(2, 3), slice_at(5, 5), slice_at(10, 1),
            slice_at(20, 1, bind_id="1", flow_out=True),
            slice_at(22, 1, bind_id="1", flow_in=True),
            {"name": "IN_FLIGHT", "ph": "C", "pid": 0, "tid": 1, "ts": 1, "args": {"bytes": 3}}), [])

    def test_faults_are_named(self):
        """One each."""
        for events, problem in (
                ([slice_at(0, 10), slice_at(5, 10)], "STEP at 5 ends after STEP"),
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
                ([slice_at(0, 1, bind_id="1", flow_out=True)], "flow 1 has flow_out alone"),
                ([slice_at(0, 1, ph="C", args={"bytes": "many"})], "a counter of"),
                ([], "no slices")):
            with self.subTest(problem):
                self.assertIn(problem, "\n".join(self.problems(*events)))

    def test_what_is_not_json_is_an_error(self):
        """As json reports it."""
        for text in ("[{]", '[{"ts": NaN}]'):
            with self.subTest(text), self.assertRaises(ValueError):
                list(trace_rules.problems_of(text))


if __name__ == "__main__":
    unittest.main()
