#!/usr/bin/env python3
"""Tests reading tables of epochs from files."""

import json
import unittest

import model
from studies.scaling_model import tables
from studies.scaling_model.training import Wrong

TITLES = ("setting,mapping,nodes,ranks,threads,oversubscribed,items_per_second_median,interval_low,interval_high,"
          "epoch_seconds\n")


def line(setting, nodes, ranks, speed, seconds, oversubscribed="no"):
    """Returns a line as scaling_sweep writes it."""
    return f"{setting},,{nodes},{ranks},1,{oversubscribed},{speed},1,2,{seconds}\n"


ONE_NODE = TITLES + line("a", 1, 1, 100, 10) + line("a", 1, 2, 160, 6.25) + line("a", 1, 4, 250, 4) + line(
    "a", 1, 8, 900, 1, "yes")


def document(**changes):
    column = {"name": "c", "ranks_per_node": 2, "epoch_seconds": [3, 2.5]}
    made = {"source": "s", "images": 10, "batch_per_rank": 5, "cores_per_node": 4, "nodes": [1, 2],
            "columns": [{key: changes.pop(key, value) for key, value in column.items()}]}
    return json.dumps({**made, **changes})


class JsonTest(unittest.TestCase):
    def refuse(self, text, *parts):
        with self.assertRaises(Wrong) as refused:
            tables.parse(text)
        for part in parts:
            self.assertIn(part, str(refused.exception))

    def test_a_table_is_read(self):
        table = tables.parse(document())
        self.assertEqual((table.images, table.nodes), (10, [1, 2]))
        self.assertEqual(table.columns, [tables.Column("c", 2, (3, 2.5))])

    def test_bad_tables_are_errors_that_name_the_field(self):
        self.refuse(document(nodes=[2, 1]), "1 follows 2")
        self.refuse(document(nodes=[]), "nodes must be a list")
        self.refuse(document(epoch_seconds=[3]), "'c'", "1 entries", "2")
        self.refuse(document(columns=[{}]), "column 1 lacks name, ranks_per_node, epoch_seconds")
        for value in (0, None, True, float("nan"), float("inf")):
            self.refuse(document(epoch_seconds=[3, value]), "column 1: epoch_seconds must be numbers above 0")
        for field in ("images", "batch_per_rank", "cores_per_node", "ranks_per_node"):
            for value in (4294967297, 1e300, -1, 0, 1.5, True):
                self.refuse(document(**{field: value}), field)
        self.refuse('{"source": "s", "images": 1, "nodes": [1]}',
                    "the table lacks batch_per_rank, cores_per_node, columns; it must have source, images")
        self.refuse("x", "is not JSON")
        twice = json.loads(document())["columns"] * 2
        self.refuse(document(columns=twice), "two columns are called 'c'")
        for path in ("/nonexistent/table.json", "/dev/null/x"):
            with self.assertRaisesRegex(Wrong, path + ": cannot be read"):
                tables.read(path)

    def test_the_published_table_has_six_columns_of_eight_rows(self):
        table = model.published()
        self.assertEqual(table.nodes, [1, 2, 4, 8, 16, 32, 64, 128])
        self.assertEqual(len(table.columns), 6)
        self.assertEqual(table.columns[5].epoch_seconds[7], 11.7)
        self.assertEqual(table.columns[5].ranks_per_node, 4)

    def test_efficiencies_match_the_published_ones(self):
        table = model.published()
        for column, printed in ((table.columns[0], 30.75), (table.columns[3], 67.14)):
            # The published ones have two digits and were computed from times with more digits.
            seconds = column.epoch_seconds
            self.assertAlmostEqual(100 * seconds[0] / (128 * seconds[7]), printed, delta=0.025)
            low, high = ((seconds[0] + sign * 0.005) / (128 * (seconds[7] - sign * 0.005)) for sign in (-1, 1))
            self.assertTrue(100 * low < printed < 100 * high)


class SweepTest(unittest.TestCase):
    def refuse(self, text, *parts, **facts):
        with self.assertRaises(Wrong) as refused:
            tables.parse_sweep(text, **facts)
        for part in parts:
            self.assertIn(part, str(refused.exception))

    def test_ranks_of_one_node_are_the_rows(self):
        table = tables.parse_sweep(ONE_NODE, batch_per_rank=20)
        self.assertTrue(table.ranks_stand_for_nodes)
        self.assertEqual((table.images, table.batch_per_rank), (1000, 20))  # 10 s at 100 a second
        self.assertEqual(table.nodes, [1, 2, 4])  # without the oversubscribed row
        self.assertEqual(table.columns, [tables.Column("a, 1 thread", 1, (10, 6.25, 4))])

    def test_nodes_are_the_rows_if_there_are_several(self):
        text = TITLES + "".join(
            line(setting, nodes, 4 * nodes, 100 * nodes, "") for setting in ("a", '"b, ""c"""')
            for nodes in (1, 2, 4, 8) if setting != "a" or nodes != 2)
        table = tables.parse_sweep(text, items_per_epoch=800, world_batch=64)
        self.assertFalse(table.ranks_stand_for_nodes)
        self.assertEqual(table.nodes, [1, 4, 8])  # the numbers that both settings have
        self.assertEqual(table.columns[1], tables.Column('b, "c", 1 thread, 4 ranks per node', 4, (8, 2, 1)))
        self.assertEqual((table.batch_of_rank(16), table.batch_of_rank(128)), (4, 1))

    def test_missing_facts_are_named(self):
        self.refuse("nodes,ranks\n1,1\n", "lacks the columns setting, mapping, threads", "scaling_sweep report",
                    batch_per_rank=20)
        self.refuse("", "lacks the columns setting", batch_per_rank=20)
        self.refuse(ONE_NODE, "--batch-per-rank")
        self.refuse(TITLES + "".join(line("a", 1, ranks, 100 * ranks, "") for ranks in (1, 2, 4)), "--items-per-epoch",
                    batch_per_rank=20)
        self.refuse(TITLES + line("a", 1, 1, 100, 1) + line("a", 1, 2, "", ""), "fewer than 3", batch_per_rank=20)
        # Rows with other threads belong to other series.
        self.refuse(TITLES + ",,1,1,4,no,100,1,2,1\n,,1,2,2,no,160,1,2,1\n,,1,4,1,no,250,1,2,1\n",
                    "scaling_sweep run --threads 1", batch_per_rank=20)
        self.refuse(TITLES + "a,b\n", "line 2 does not have as many cells", batch_per_rank=20)
        with self.assertRaisesRegex(Wrong, "/table.csv: cannot be read"):
            tables.read("/", batch_per_rank=20)

    def test_invalid_numbers_are_not_rows(self):
        odd = [line("a", 1, 1 << 30, 100, 1), line("a", 2, 1, 100, 1), line("a", 1, 1, "nan", 1),
               line("a", 1, 1, "1e300", 1), line("a", "x", 1, 100, 1)]
        table = tables.parse_sweep(ONE_NODE + "".join(odd), batch_per_rank=20)
        self.assertEqual(table.nodes, [1, 2, 4])
        self.assertTrue(table.ranks_stand_for_nodes)


if __name__ == "__main__":
    unittest.main()
