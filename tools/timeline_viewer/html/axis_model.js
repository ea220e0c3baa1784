// The layout of the time axis: the window of time that is shown, and the bands
// from top to bottom. Groups of bands (ranks, tensors) can be closed.

const ROW_HEIGHT = 18;
const HEAD_HEIGHT = 24;
const CHART_HEIGHT = 40;
const FIRST_TENSOR_TRACK = 10;
const MOST_OPEN_GROUPS = 8;
const MOST_OPEN_TENSOR_TRACKS = 3;
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
function tracksOf(list) {
  const tracks = [];
  for (const row of list) {
    const last = tracks[tracks.length - 1];
    if (last !== undefined && last.tid === row.tid) last.rows.push(row);
    else tracks.push({tid: row.tid, name: row.track, rows: [row]});
  }
  return tracks;
}

// Makes one group per process: {process, tracks, tensors, charts, open,
// tensorsOpen}.
function makeGroups() {
  const rowsOf = groupBy(rows, (row) => row.pid);
  const chartsOf = groupBy(charts, (chart) => chart.pid);
  const groups = [];
  for (const process of facts.processes) {
    const tracks = tracksOf(rowsOf.get(process.pid) || []);
    const isTensor = (track) =>
      process.is_rank && track.tid >= FIRST_TENSOR_TRACK;
    const group = {
      process,
      label: labelOfProcess(process),
      tracks: tracks.filter((track) => !isTensor(track)),
      tensors: tracks.filter(isTensor),
      charts: chartsOf.get(process.pid) || [],
    };
    if (tracks.length + group.charts.length === 0) continue;
    group.tensorsOpen = group.tensors.length <= MOST_OPEN_TENSOR_TRACKS;
    groups.push(group);
  }
  for (const group of groups) {
    group.open = groups.length <= MOST_OPEN_GROUPS || !group.process.is_rank;
    // A process with one track, such as a tensor of Horovod, needs no head.
    group.single = group.tensors.length === 0 && group.charts.length === 0 &&
      group.tracks.length === 1 && !group.process.is_rank;
  }
  return groups;
}

// Lays out the bands from top to bottom: {kind, label, y, height, ...}. Kinds:
// "head" of a group (which shows its content in small when closed), "tensors"
// (likewise), "track", "chart".
function layOutBands(groups) {
  const bands = [];
  let y = 0;
  const add = (kind, height, band) => {
    bands.push({kind, y, height, ...band});
    y += height;
  };
  const addTrack = (track, label, group) => add("track",
    track.rows.length * ROW_HEIGHT + 2, {label, rows: track.rows, group});
  for (const group of groups) {
    if (group.single) {
      addTrack(group.tracks[0], group.label, group);
      continue;
    }
    const all = [...group.tracks, ...group.tensors];
    add("head", group.open ? HEAD_HEIGHT : miniHeight(all), {
      label: group.label, note: group.process.host, group, open: group.open,
      rows: group.open ? [] : all.flatMap((track) => track.rows),
    });
    if (!group.open) continue;
    for (const track of group.tracks) {
      addTrack(track, track.name || `track ${track.tid}`, group);
    }
    if (group.tensors.length > 0) {
      const {tensors, tensorsOpen} = group;
      add("tensors", tensorsOpen ? HEAD_HEIGHT : miniHeight(tensors), {
        label: "tensors in flight",
        note: tensorsOpen ? "" : `${tensors.length} tracks`,
        group, open: tensorsOpen,
        rows: tensorsOpen ? [] : tensors.flatMap((track) => track.rows),
      });
      if (tensorsOpen) {
        for (const track of tensors) addTrack(track, track.name, group);
      }
    }
    for (const chart of group.charts) {
      add("chart", CHART_HEIGHT, {label: chart.label, chart, group});
    }
  }
  return {bands, height: y};
}

// Closed groups show their rows with a height of some pixels.
function miniHeight(tracks) {
  const count = tracks.reduce((sum, track) => sum + track.rows.length, 0);
  return Math.min(Math.max(HEAD_HEIGHT, count * 3 + 4), 56);
}

// The place of the `i`-th row of a band: {y, height}.
function rowBox(band, i) {
  if (band.kind === "track") {
    return {y: band.y + 1 + i * ROW_HEIGHT, height: ROW_HEIGHT - 1};
  }
  const height = (band.height - 4) / band.rows.length;
  return {y: band.y + 2 + i * height, height: Math.max(height - 0.3, 0.7)};
}

// The row of `band` at a vertical position; -1: none.
function rowAt(band, y) {
  if (band.rows === undefined || band.rows.length === 0) return -1;
  const within = band.kind === "track" ? (y - band.y - 1) / ROW_HEIGHT :
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
