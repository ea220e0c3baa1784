// Reads what timeline_viewer put into the page (page_facts.h). Times are
// nanoseconds since the trace's first event.

const NODE_CHILDREN = 16;

// The JSON in the element `id`, whose text is then let go.
function takeJson(id) {
  const element = document.getElementById(id);
  const value = JSON.parse(element.textContent);
  element.remove();
  return value;
}

// Slices of one lane at one depth: slices.start, .duration and .name, and what
// they say: said.batch, ... (-1: not said), and levels of detail.
class Row {
  constructor(index, [pid, tid, depth, count, lane], data) {
    Object.assign(this, {index, pid, tid, depth, count, lane}, data);
  }

  // What slice `i` says: {batch, bytes, ...}; text as a string.
  details(i) {
    const told = {};
    for (const [field, values] of Object.entries(this.said)) {
      if (values[i] !== -1) told[field] = values[i];
    }
    if ("text" in told) told.text = facts.names[told.text];
    return told;
  }

  // Of slice `i` alone; -1: not said.
  saidOf(field, i) {
    return field in this.said ? this.said[field][i] : -1;
  }

  end(i) {
    return this.slices.start[i] + this.slices.duration[i];
  }

  // The first slice that starts at `time` or later; count if none does.
  firstFrom(time) {
    return lowerBound(this.slices.start, time);
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
