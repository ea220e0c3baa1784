// Reads what timeline_viewer put into the page (page_facts.h, page_encoding.h).
// Times are nanoseconds since the trace's first event.

const facts = JSON.parse(document.getElementById("facts").textContent);

const NODE_CHILDREN = 16;

// Fields that a slice may say, in the order of the bits that tell so.
const FIELDS = ["batch", "tensors", "bytes", "last_rank", "lateness_us",
  "picked_up", "step", "text"];
const BATCH_BIT = 0;
const STEP_BIT = 6;
const TEXT_BIT = 7;

// The bytes in the element `id`; the text is then let go.
function takeBytes(id) {
  const element = document.getElementById(id);
  const text = atob(element.textContent);
  element.remove();
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

class ByteReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  varint() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let factor = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 0x7f) * factor;
      factor *= 128;
    } while (byte >= 0x80);
    return value;
  }

  signed() {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  float() {
    const view = new DataView(this.bytes.buffer, this.at, 4);
    this.at += 4;
    return view.getFloat32(0, true);
  }

  skipVarint() {
    while (this.bytes[this.at++] >= 0x80);
  }
}

function readLevel(reader) {
  const count = reader.varint();
  const level = {
    count,
    start: new Float64Array(count),
    end: new Float64Array(count),
    busy: new Float64Array(count),
    name: new Uint32Array(count),
  };
  let end = 0;
  for (let i = 0; i < count; ++i) {
    level.start[i] = end + reader.signed();
    end = level.start[i] + reader.varint();
    level.end[i] = end;
    level.busy[i] = reader.varint();
    level.name[i] = reader.varint();
  }
  return level;
}

// Slices of one lane at one depth. They are read when they are first needed.
class Row {
  constructor(index, [pid, tid, depth, count, lane], reader) {
    Object.assign(this, {index, pid, tid, depth, count, lane});
    this.levels = [];
    const levels = reader.varint();
    for (let i = 0; i < levels; ++i) this.levels.push(readLevel(reader));
    this.read = null;
  }

  slices() {
    if (this.read !== null) return this.read;
    const reader = new ByteReader(takeBytes(`row${this.index}`));
    const count = reader.varint();
    const slices = {
      count,
      start: new Float64Array(count),
      duration: new Float64Array(count),
      name: new Uint32Array(count),
      batch: new Float64Array(count),
      text: new Int32Array(count),  // index in facts.names; -1: none
      said: new Uint32Array(count),  // where its fields stand in bytes
      bytes: reader.bytes,
    };
    for (let i = 0; i < count; ++i) slices.start[i] = reader.signed();
    for (let i = 0; i < count; ++i) slices.duration[i] = reader.varint();
    for (let i = 0; i < count; ++i) slices.name[i] = reader.varint();
    let end = 0;
    for (let i = 0; i < count; ++i) {
      slices.start[i] += end;
      end = slices.start[i] + slices.duration[i];
    }
    for (let i = 0; i < count; ++i) {
      slices.said[i] = reader.at;
      const flags = reader.bytes[reader.at++];
      slices.batch[i] = flags & 1 << BATCH_BIT ? reader.signed() : -1;
      for (let bit = 1; bit < TEXT_BIT; ++bit) {
        if (flags & 1 << bit) reader.skipVarint();
      }
      slices.text[i] = flags & 1 << TEXT_BIT ? reader.signed() : -1;
    }
    this.read = slices;
    return slices;
  }

  // What slice `i` says: {batch, bytes, ...}; text as a string.
  details(i) {
    const slices = this.slices();
    const reader = new ByteReader(slices.bytes);
    reader.at = slices.said[i];
    const flags = reader.bytes[reader.at++];
    const said = {};
    FIELDS.forEach((field, bit) => {
      if (flags & 1 << bit) said[field] = reader.signed();
    });
    if ("text" in said) said.text = facts.names[said.text];
    return said;
  }

  end(i) {
    const slices = this.slices();
    return slices.start[i] + slices.duration[i];
  }

  // The first slice that starts at `time` or later; count if none does.
  firstFrom(time) {
    return lowerBound(this.slices().start, time);
  }
}

// The first index of the sorted `values` whose value is `at` or more.
function lowerBound(values, at) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function readRows() {
  const reader = new ByteReader(takeBytes("levels"));
  return facts.rows.map((row, index) => new Row(index, row, reader));
}

// Charts with their points: lines of {name, times, values, most}.
function readCharts() {
  const reader = new ByteReader(takeBytes("charts"));
  return facts.charts.map((chart) => ({
    ...chart,
    lines: chart.lines.map((name) => {
      const count = reader.varint();
      const times = new Float64Array(count);
      const values = new Float32Array(count);
      let time = 0;
      for (let i = 0; i < count; ++i) times[i] = time += reader.signed();
      let most = 0;
      for (let i = 0; i < count; ++i) {
        values[i] = reader.float();
        if (values[i] > most) most = values[i];
      }
      return {name, times, values, most};
    }),
  }));
}

// A rank's step out of a row of facts.step.steps.
function stepOf(row) {
  const parts = row.slice(3, 3 + facts.step.parts.length);
  return {
    rank: row[0],
    number: row[1],
    start: row[2],
    parts,
    duration: parts.reduce((sum, part) => sum + part, 0),
    hidden: row[row.length - 2],
    lateness: row[row.length - 1],
  };
}

const rows = readRows();
const charts = readCharts();
const steps = facts.step.steps.map(stepOf);
const steadySteps = steps.filter(
  (step) => step.number >= facts.step.first_steady);
