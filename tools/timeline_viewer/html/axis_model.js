// The layout of the time axis: the window of time that is shown, and the bands
// from top to bottom. Groups of bands (ranks, tensors) can be closed.

const ROW_HEIGHT = 18;
const HEAD_HEIGHT = 24;
const CHART_HEIGHT = 40;
const FIRST_TENSOR_LANE = 10;
const MOST_OPEN_GROUPS = 8;
const MOST_OPEN_TENSOR_LANES = 3;
const SHORTEST_WINDOW = 20;  // ns

class TimeWindow {
  constructor(length) {
    this.length = Math.max(length, 1);
    this.showAll();
  }

  get width() {
    return this.end - this.start;
  }

  showAll() {
    const margin = this.length * 0.01;
    this.set(-margin, this.length + margin);
  }

  // Limits the window so that some of the trace is always visible.
  set(start, end) {
    const width = Math.min(Math.max(end - start, SHORTEST_WINDOW),
      this.length * 1.1);
    const middle = (start + end) / 2;
    const margin = Math.max(width / 2, this.length * 0.01);
    this.start = Math.min(Math.max(middle - width / 2, -margin),
      this.length + margin - width);
    this.end = this.start + width;
  }

  zoom(factor, at) {
    this.set(at - (at - this.start) * factor, at + (this.end - at) * factor);
  }

  move(share) {
    this.set(this.start + share * this.width, this.end + share * this.width);
  }
}

// Groups rows to tracks. A track has the rows of one (pid, tid), one below the
// other.
function lanesOf(list) {
  const lanes = [];
  for (const row of list) {
    const last = lanes[lanes.length - 1];
    if (last !== undefined && last.tid === row.tid) last.rows.push(row);
    else lanes.push({tid: row.tid, name: row.lane, rows: [row]});
  }
  return lanes;
}

// Makes one group per process: {process, lanes, tensors, charts, open,
// tensorsOpen}.
function makeGroups() {
  const rowsOf = groupBy(rows, (row) => row.pid);
  const chartsOf = groupBy(charts, (chart) => chart.pid);
  const groups = [];
  for (const process of facts.processes) {
    const lanes = lanesOf(rowsOf.get(process.pid) || []);
    const isTensor = (lane) =>
      process.is_rank && lane.tid >= FIRST_TENSOR_LANE;
    const group = {
      process,
      label: labelOfProcess(process),
      lanes: lanes.filter((lane) => !isTensor(lane)),
      tensors: lanes.filter(isTensor),
      charts: chartsOf.get(process.pid) || [],
    };
    if (lanes.length + group.charts.length === 0) continue;
    group.tensorsOpen = group.tensors.length <= MOST_OPEN_TENSOR_LANES;
    groups.push(group);
  }
  for (const group of groups) {
    group.open = groups.length <= MOST_OPEN_GROUPS || !group.process.is_rank;
    // A process with one track, such as a tensor of Horovod, needs no head.
    group.single = group.tensors.length === 0 && group.charts.length === 0 &&
      group.lanes.length === 1 && !group.process.is_rank;
  }
  return groups;
}

// Lays out the bands from top to bottom: {kind, label, y, height, ...}. Kinds:
// "head" of a group (which shows its content in small when closed), "tensors"
// (likewise), "lane", "chart".
function layOutBands(groups) {
  const bands = [];
  let y = 0;
  const add = (kind, height, band) => {
    bands.push({kind, y, height, ...band});
    y += height;
  };
  const addLane = (lane, label, group) => add("lane",
    lane.rows.length * ROW_HEIGHT + 2, {label, rows: lane.rows, group});
  for (const group of groups) {
    if (group.single) {
      addLane(group.lanes[0], group.label, group);
      continue;
    }
    const all = [...group.lanes, ...group.tensors];
    add("head", group.open ? HEAD_HEIGHT : miniHeight(all), {
      label: group.label, note: group.process.host, group, open: group.open,
      rows: group.open ? [] : all.flatMap((lane) => lane.rows),
    });
    if (!group.open) continue;
    for (const lane of group.lanes) {
      addLane(lane, lane.name || `track ${lane.tid}`, group);
    }
    if (group.tensors.length > 0) {
      const {tensors, tensorsOpen} = group;
      add("tensors", tensorsOpen ? HEAD_HEIGHT : miniHeight(tensors), {
        label: "tensors in flight",
        note: tensorsOpen ? "" : `${tensors.length} tracks`,
        group, open: tensorsOpen,
        rows: tensorsOpen ? [] : tensors.flatMap((lane) => lane.rows),
      });
      if (tensorsOpen) {
        for (const lane of tensors) addLane(lane, lane.name, group);
      }
    }
    for (const chart of group.charts) {
      add("chart", CHART_HEIGHT, {label: chart.label, chart, group});
    }
  }
  return {bands, height: y};
}

// Closed groups show their rows with a height of some pixels.
function miniHeight(lanes) {
  const count = lanes.reduce((sum, lane) => sum + lane.rows.length, 0);
  return Math.min(Math.max(HEAD_HEIGHT, count * 3 + 4), 56);
}

// The place of the `i`-th row of a band: {y, height}.
function rowBox(band, i) {
  if (band.kind === "lane") {
    return {y: band.y + 1 + i * ROW_HEIGHT, height: ROW_HEIGHT - 1};
  }
  const height = (band.height - 4) / band.rows.length;
  return {y: band.y + 2 + i * height, height: Math.max(height - 0.3, 0.7)};
}

// The row of `band` at a vertical position; -1: none.
function rowAt(band, y) {
  if (band.rows === undefined || band.rows.length === 0) return -1;
  const within = band.kind === "lane" ? (y - band.y - 1) / ROW_HEIGHT :
    (y - band.y - 2) / ((band.height - 4) / band.rows.length);
  const at = Math.floor(within);
  return at >= 0 && at < band.rows.length ? at : -1;
}

// The slice of `row` at `time`, or the nearest one within `tolerance`; -1: none.
function sliceAt(row, time, tolerance) {
  const after = row.firstFrom(time);
  let best = -1;
  let distance = tolerance;
  for (const i of [after - 1, after]) {
    if (i < 0 || i >= row.count) continue;
    const start = row.slices.start[i];
    const away = Math.max(start - time, time - row.end(i), 0);
    if (away <= distance) {
      best = i;
      distance = away;
    }
  }
  return best;
}
