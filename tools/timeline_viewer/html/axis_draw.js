// Draws the time axis. A row is drawn from its levels of detail. A node of some
// pixels is replaced by its children, down to the slices. A narrower node is
// painted in the colour of the name that takes most of its time; the colour is
// paler if the node is less busy.

const NARROW = 2;  // px
const FONT = "11px system-ui, sans-serif";

// Gives `canvas` a size in CSS pixels; returns its context in these.
function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    [canvas.width, canvas.height] = pixels;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// Colours of the current theme, from the style sheet.
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {text: of("text"), quiet: of("quiet"), line: of("line"),
    card: of("card"), back: of("back"), head: of("head"), mark: of("mark"),
    accent: of("accent")};
}

class RowPainter {
  // `look` = {search, selected: {row, index} or null, bucket: the highlighted
  // bucket or -1}.
  constructor(context, window, width, look) {
    this.context = context;
    this.window = window;
    this.width = width;
    this.scale = width / window.width;  // px per ns
    this.look = look;
    this.painted = 0;
  }

  x(time) {
    return (time - this.window.start) * this.scale;
  }

  paint(row, y, height) {
    this.row = row;
    this.y = y;
    this.height = height;
    this.until = -1;  // x up to which narrow rectangles have been painted
    const top = row.levels.length - 1;
    if (top >= 0) this.paintNodes(top, 0, row.levels[top].name.length);
    else this.paintSlices(0, row.count);
    this.context.globalAlpha = 1;
  }

  paintNodes(level, first, end) {
    const nodes = this.row.levels[level];
    for (let i = first; i < end; ++i) {
      const length = nodes.duration[i];
      if (nodes.start[i] + length < this.window.start) continue;
      if (nodes.start[i] > this.window.end) break;
      if (length * this.scale <= NARROW) {
        this.paintNode(nodes, i, NODE_CHILDREN ** (level + 1));
      } else if (level === 0) {
        this.paintSlices(i * NODE_CHILDREN,
          Math.min(this.row.count, (i + 1) * NODE_CHILDREN));
      } else {
        this.paintNodes(level - 1, i * NODE_CHILDREN, Math.min(
          this.row.levels[level - 1].name.length, (i + 1) * NODE_CHILDREN));
      }
    }
  }

  paintNode(nodes, i, slices) {
    const hit = this.look.search.active && this.look.search.hasHit(
      this.row, i * slices, Math.min(this.row.count, (i + 1) * slices));
    const length = nodes.duration[i];
    const x = this.x(nodes.start[i]);
    const width = Math.max(length * this.scale, 1);
    if (x + width < this.until + 0.5 && !hit) return;
    this.until = x + width;
    const busy = length === 0 ? 1 : Math.min(nodes.busy[i] / length, 1);
    const context = this.context;
    context.globalAlpha = (0.25 + 0.75 * busy) *
      (this.look.search.active && !hit ? 0.25 : 1);
    context.fillStyle = nameColours[nodes.name[i]];
    context.fillRect(x, this.y, width, this.height);
    if (hit) this.paintHit(x, width);
    ++this.painted;
  }

  paintHit(x, width) {
    this.context.globalAlpha = 1;
    this.context.fillStyle = this.look.colours.text;
    this.context.fillRect(x, this.y + this.height - 3, Math.max(width, 1.5), 3);
  }

  paintSlices(first, end) {
    const slices = this.row.slices;
    const {search, bucket, selected} = this.look;
    const context = this.context;
    for (let i = first; i < end; ++i) {
      const from = slices.start[i];
      if (from > this.window.end) break;
      if (from + slices.duration[i] < this.window.start) continue;
      const x = Math.max(this.x(from), -1);
      const right = Math.min(this.x(from + slices.duration[i]), this.width + 1);
      const hit = search.active && search.hasHit(this.row, i, i + 1);
      const same = bucket >= 0 && this.row.saidOf("bucket", i) === bucket;
      if (right < this.until + 0.5 && !hit && !same) continue;
      const width = Math.max(right - x, 1);
      this.until = x + width;
      const dim = (search.active && !hit) || (bucket >= 0 && !same);
      context.globalAlpha = dim ? 0.3 : 1;
      context.fillStyle = nameColours[slices.name[i]];
      context.fillRect(x, this.y, width > 3 ? width - 0.6 : width, this.height);
      if (hit && width <= 30) this.paintHit(x, width);
      if (width > 30 && this.height > 11) this.label(i, x, width, slices);
      if (selected !== null && selected.row === this.row &&
        selected.index === i) this.frame(x, width);
      ++this.painted;
    }
  }

  label(i, x, width, slices) {
    const context = this.context;
    const text = this.textOf(i, width, slices);
    const room = Math.floor((width - 8) / 6.4);
    if (room < 2) return;
    context.fillStyle = nameInks[slices.name[i]];
    context.fillText(text.length <= room ? text :
      `${text.slice(0, room - 1)}\u2026`, x + 4, this.y + this.height / 2 + 0.5,
    width - 6);
  }

  textOf(i, width, slices) {
    const name = facts.names[slices.name[i]];
    const {step, text} = this.row.details(i);
    if (step !== undefined) return `step ${step}`;
    return text !== undefined && width > 160 ? `${name}  ${text}` : name;
  }

  frame(x, width) {
    const context = this.context;
    context.globalAlpha = 1;
    context.strokeStyle = this.look.colours.text;
    context.lineWidth = 2;
    context.strokeRect(x - 1, this.y - 0.5, Math.max(width, 3) + 1,
      this.height + 1);
  }
}

// The time between marks: the smallest round time of 110 px or more.
function tickStep(width, pixels) {
  const rough = width / Math.max(1, pixels / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= rough);
}

function drawRuler(canvas, window, width, marks) {
  const height = 36;
  const context = prepareCanvas(canvas, width, height);
  const colours = themeColours();
  const scale = width / window.width;
  context.font = FONT;
  context.textBaseline = "middle";
  const step = tickStep(window.width, width);
  context.fillStyle = colours.quiet;
  for (let i = Math.ceil(window.start / step); i * step <= window.end; ++i) {
    const x = (i * step - window.start) * scale;
    context.fillRect(x, 0, 1, 6);
    context.fillText(formatMoment(i * step, step), x + 4, 9);
  }
  // The steps, with numbers if there is room.
  let numbered = -Infinity;  // right end of the last number
  let ticked = -Infinity;
  context.fillStyle = colours.text;
  for (const {start, number} of marks) {
    const x = (start - window.start) * scale;
    if (x < -40 || x > width) continue;
    if (x >= numbered) {
      const text = `step ${number}`;
      context.fillRect(x, 18, 1, 18);
      context.fillText(text, x + 4, 24);
      numbered = x + context.measureText(text).width + 14;
    } else if (x - ticked > 5) {
      context.fillRect(x, 32, 1, 4);
    } else continue;
    ticked = x;
  }
  return step;
}

// The lines of one chart, from 0 to the largest value of any line.
function drawChart(context, chart, y, height, window, width, colours) {
  const scale = width / window.width;
  const most = Math.max(...chart.lines.map((line) => line.most), 1e-9);
  const bottom = y + height - 3;
  const room = height - 8;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(-2, y + 0.5, width + 4, height - 1);
  chart.lines.forEach((line, at) => {
    context.strokeStyle = chartColour(at);
    context.lineWidth = 1.5;
    context.setLineDash(at % 2 === 0 ? [] : [5, 3]);
    context.beginPath();
    const first = Math.max(lowerBound(line.times, window.start) - 1, 0);
    let drawnX = -Infinity;
    let highest = 0;  // of the samples since the last one drawn
    for (let i = first; i < line.times.length; ++i) {
      const x = (line.times[i] - window.start) * scale;
      highest = Math.max(highest, line.values[i]);
      if (x - drawnX < 0.5 && i + 1 < line.times.length) continue;
      const value = bottom - highest / most * room;
      if (i === first) context.moveTo(x, value);
      else context.lineTo(x, value);
      drawnX = x;
      highest = 0;
      if (line.times[i] > window.end) break;
    }
    context.stroke();
    if (line.times.length === 1) {  // one sample is drawn as a point
      context.fillStyle = chartColour(at);
      context.fillRect((line.times[0] - window.start) * scale - 2,
        bottom - line.values[0] / most * room - 2, 4, 4);
    }
  });
  context.setLineDash([]);
  context.font = FONT;
  context.textBaseline = "top";
  context.textAlign = "right";
  const text = `${formatValue(most)} ${chart.unit}`;
  const length = context.measureText(text).width;
  context.globalAlpha = 0.8;
  context.fillStyle = colours.card;
  context.fillRect(width - length - 8, y + 1, length + 8, 15);
  context.globalAlpha = 1;
  context.fillStyle = colours.quiet;
  context.fillText(text, width - 4, y + 3);
  context.textAlign = "left";
  context.textBaseline = "middle";
}

function chartColour(at) {
  return [PALETTE.sky, PALETTE.vermillion, PALETTE.green, PALETTE.purple,
    PALETTE.orange][at % 5];
}

function formatValue(value) {
  return value >= 100 ? formatCount(value) : significant(value);
}

// The value of `line` at `time`: a sample covers the time before it.
function valueAt(line, time) {
  const at = lowerBound(line.times, time);
  if (line.times.length === 0) return NaN;
  return line.values[Math.min(at, line.times.length - 1)];
}
