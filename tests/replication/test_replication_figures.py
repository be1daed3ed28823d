"""Each figure of a node has a metric of its own, and what the log's connection counts is among them."""

from __future__ import annotations

from terrazzo.runtime.cluster_metrics import CLUSTER, ClusterFigures
from terrazzo_adapters.jetstream import JetStreamStats


def test_each_figure_has_a_metric() -> None:
    assert sorted(figure.field for figure in CLUSTER.values()) == sorted(ClusterFigures.__struct_fields__)
    assert set(JetStreamStats.__struct_fields__) <= set(ClusterFigures.__struct_fields__)
