// Reads the data that timeline_viewer put into the page (page_facts.h). Times
// are nanoseconds since the trace's first event.

const NODE_CHILDREN = 16;

// Returns the JSON in the element `id` and removes the element.
function takeJson(id) {
  const element = document.getElementById(id);
  const value = JSON.parse(element.textContent);
  element.remove();
  return value;
}

// Slices of one track at one depth: slices.start, .duration and .name, their
// details said.bucket, ... (-1: missing), and levels of detail.
class Row {
  constructor(index, [pid, tid, depth, count, track], data) {
    Object.assign(this, {index, pid, tid, depth, count, track}, data);
  }

  // The details of slice `i`: {bucket, bytes, ...}; text is a string.
  details(i) {
    const told = {};
    for (const [field, values] of Object.entries(this.said)) {
      if (values[i] !== -1) told[field] = values[i];
    }
    if ("text" in told) told.text = facts.names[told.text];
    return told;
  }

  // One detail of slice `i`; -1: missing.
  saidOf(field, i) {
    return field in this.said ? this.said[field][i] : -1;
  }

  end(i) {
    return this.slices.start[i] + this.slices.duration[i];
  }

  // The index of the first slice that starts at `time` or later; count if there
  // is none.
  firstFrom(time) {
    return lowerBound(this.slices.start, time);
  }
}

// The first index of the sorted `values` with a value of `at` or more.
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

// Converts a row of facts.step.steps to an object.
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

const facts = takeJson("facts");
const rows = facts.rows.map(
  (row, index) => new Row(index, row, takeJson(`row${index}`)));
const charts = facts.charts;
for (const line of charts.flatMap((chart) => chart.lines)) {
  line.most = line.values.reduce((most, value) => Math.max(most, value), 0);
}
const steps = facts.step.steps.map(stepOf);
const steadySteps = steps.filter(
  (step) => step.number >= facts.step.first_steady);
