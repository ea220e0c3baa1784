// The second view: how late each rank was in each step, and which communication
// is hidden behind computing.

// `show` = {stepOnAxis(rank, number)}.
function buildStragglers(show) {
  const view = byId("stragglers");
  if (!facts.step.known || !facts.step.knows_waits) {
    view.append(make("div", {class: "card"},
      make("h2", {}, facts.step.known ? "No waits" : "No training steps"),
      make("p", {}, "The trace does not record training steps and waits for " +
        "gradients. So it is unknown which rank was late in which step, and " +
        "which communication was hidden behind computing.")));
    return null;
  }
  const map = new HeatMap(steadySteps, show);
  view.append(map.card, overlapCard(), ranksCard());
  return map;
}

// Lateness of ranks (rows) in steps (columns). Several steps share a column if
// there is not enough room.
class HeatMap {
  constructor(list, show) {
    this.show = show;
    this.ranks = [...new Set(list.map((step) => step.rank))]
      .sort((a, b) => a - b);
    this.numbers = [...new Set(list.map((step) => step.number))];
    const columnOf = new Map(this.numbers.map((number, i) => [number, i]));
    const rowOf = new Map(this.ranks.map((rank, i) => [rank, i]));
    this.cells = this.ranks.map(() => new Float32Array(this.numbers.length));
    for (const step of list) {
      this.cells[rowOf.get(step.rank)][columnOf.get(step.number)] =
        step.lateness;
    }
    this.chosen = {row: 0, column: 0};
    this.canvas = make("canvas", {tabindex: "0", role: "img",
      "aria-label": "Lateness by rank and step. Arrow keys select a cell, " +
        "Enter shows it on the time axis."});
    this.status = make("p", {role: "status", class: "quiet"},
      "Point at a cell, or select one with the arrow keys.");
    this.card = make("div", {class: "card", id: "heat-map"},
      make("h2", {}, "Lateness of ranks"),
      make("p", {class: "quiet"}, "How long the others waited for a rank in a " +
        "step, as a part of the step. Click a cell to see the step on the " +
        "time axis."),
      heatLegend(), make("div", {class: "heat-frame"}, this.canvas),
      this.status);
    this.canvas.addEventListener("mousemove", (event) => this.choose(event));
    this.canvas.addEventListener("click", (event) => {
      this.choose(event);
      this.open();
    });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
  }

  // Computes the number of columns and the size of a cell.
  layout() {
    const room = Math.max(100, this.card.clientWidth - 130);
    this.left = 64;
    this.columns = Math.min(this.numbers.length, Math.floor(room / 4));
    this.cellWidth = Math.min(44, Math.floor(room / this.columns));
    this.cellHeight = this.ranks.length > 32 ? 12 : 22;
  }

  // The steps of a column: [first, end) in this.numbers.
  stepsOf(column) {
    const count = this.numbers.length;
    return [Math.floor(count * column / this.columns),
      Math.floor(count * (column + 1) / this.columns)];
  }

  // The step of a column with the largest lateness: its number and lateness.
  latest(row, column) {
    const [first, end] = this.stepsOf(column);
    let at = first;
    for (let i = first + 1; i < end; ++i) {
      if (this.cells[row][i] > this.cells[row][at]) at = i;
    }
    return {number: this.numbers[at], lateness: this.cells[row][at]};
  }

  draw() {
    if (this.card.clientWidth === 0) return;  // not shown
    this.layout();
    const width = this.left + this.columns * this.cellWidth + 2;
    const height = this.ranks.length * this.cellHeight + 24;
    const context = prepareCanvas(this.canvas, width, height);
    const colours = themeColours();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (let row = 0; row < this.ranks.length; ++row) {
      const y = row * this.cellHeight;
      context.fillStyle = colours.text;
      context.textAlign = "right";
      if (this.cellHeight >= 16 || row % 2 === 0) {
        context.fillText(`rank ${this.ranks[row]}`, this.left - 8,
          y + this.cellHeight / 2);
      }
      context.textAlign = "center";
      for (let column = 0; column < this.columns; ++column) {
        const lateness = this.latest(row, column).lateness;
        const x = this.left + column * this.cellWidth;
        const colour = heatColour(lateness);
        context.fillStyle = colour;
        const gap = this.cellWidth > 8 ? 1 : 0;
        context.fillRect(x, y, this.cellWidth - gap, this.cellHeight - 1);
        if (this.cellWidth >= 24 && this.cellHeight >= 16) {
          context.fillStyle = inkOn(colour);
          context.fillText(`${Math.round(lateness * 100)}`,
            x + this.cellWidth / 2, y + this.cellHeight / 2);
        }
      }
    }
    this.drawNumbers(context, colours);
    if (document.activeElement === this.canvas) {
      context.strokeStyle = colours.text;
      context.lineWidth = 2;
      context.strokeRect(this.left + this.chosen.column * this.cellWidth,
        this.chosen.row * this.cellHeight, Math.max(4, this.cellWidth - 1),
        this.cellHeight - 1);
    }
  }

  drawNumbers(context, colours) {
    const every = Math.ceil(48 / this.cellWidth);
    context.fillStyle = colours.quiet;
    context.textAlign = "center";
    const y = this.ranks.length * this.cellHeight + 12;
    for (let column = 0; column < this.columns; column += every) {
      context.fillText(`${this.numbers[this.stepsOf(column)[0]]}`,
        this.left + (column + 0.5) * this.cellWidth, y);
    }
    context.textAlign = "right";
    context.fillText("step", this.left - 8, y);
  }

  choose(event) {
    const box = this.canvas.getBoundingClientRect();
    this.moveTo(Math.floor((event.clientY - box.top) / this.cellHeight),
      Math.floor((event.clientX - box.left - this.left) / this.cellWidth));
  }

  moveTo(row, column) {
    this.chosen = {
      row: Math.min(Math.max(row, 0), this.ranks.length - 1),
      column: Math.min(Math.max(column, 0), this.columns - 1),
    };
    const {number, lateness} = this.latest(this.chosen.row, this.chosen.column);
    const [first, end] = this.stepsOf(this.chosen.column);
    this.status.textContent = `Rank ${this.ranks[this.chosen.row]}, step ` +
      `${number}: late by ${formatShare(lateness)} of the step` +
      (end - first > 1 ? ` (the latest of ${end - first} steps)` : "");
    this.draw();
  }

  open() {
    this.show.stepOnAxis(this.ranks[this.chosen.row],
      this.latest(this.chosen.row, this.chosen.column).number);
  }

  onKey(event) {
    const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0],
      ArrowDown: [1, 0]};
    if (event.key === "Enter") this.open();
    else if (event.key in moves) {
      const [down, right] = moves[event.key];
      this.moveTo(this.chosen.row + down, this.chosen.column + right);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// From pale to dark (ColorBrewer's Oranges). The darkest is 45 % of a step or
// more.
const HEAT = ["#f4f1ec", "#fdd9b4", "#fdae6b", "#f98c3f", "#e6600d", "#b83d00",
  "#7a2404"];

function heatColour(lateness) {
  const at = Math.round(lateness / 0.45 * (HEAT.length - 1));
  return HEAT[Math.min(Math.max(at, 0), HEAT.length - 1)];
}

function heatLegend() {
  const legend = make("p", {class: "quiet small", "aria-hidden": "true"},
    "not late ");
  for (const colour of HEAT) legend.append(swatch(colour));
  legend.append(" 45\u202f% of the step or more");
  return legend;
}

// The typical step: for each rank, the application above the buckets.
function overlapCard() {
  const detail = facts.step.typical;
  const start = Math.min(...detail.ranks.map((rank) => rank.start));
  const end = Math.max(...detail.ranks.map((rank) => rank.end));
  const left = (time) => `${(time - start) / (end - start) * 100}%`;
  const block = (from, to, style, title, label) => make("span", {
    style: `left:${left(from)};width:${(to - from) / (end - start) * 100}%;` +
      style, title}, label || "");
  const strips = make("div", {class: "strips", tabindex: "0",
    "aria-label": "Overlap of a typical step"});
  for (const rank of detail.ranks) {
    const step = steps.find((known) => known.rank === rank.rank &&
      known.number === detail.number);
    const strip = make("div", {class: "strip"});
    strip.append(block(rank.start, rank.end,
      `background:${PALETTE.blue};top:0`, "computing"));
    for (const [from, to, part] of rank.spans) {
      strip.append(block(Math.max(from, rank.start), Math.min(to, rank.end),
        `background:${PARTS[part].colour};top:0`,
        `${part >= 3 ? "waiting for gradients" : facts.step.parts[part]}, ` +
        formatTime(to - from)));
    }
    const waits = rank.spans.filter(([, , part]) => part >= 3);
    for (const [from, to, number, bytes, tensors] of rank.buckets) {
      bucketPieces(from, to, waits).forEach(([begin, stop, exposed]) => {
        strip.append(block(begin, stop,
          exposed ? `background:${PALETTE.sky};top:50%` :
            `background:${PALETTE.green};top:50%`,
          `bucket ${number}, ${formatBytes(bytes)} in ${tensors} tensors, ` +
          `${formatTime(to - from)}: ${exposed ? "exposed" :
            "hidden behind computing"}`));
      });
    }
    const exposed = step.parts.slice(3).reduce((sum, part) => sum + part, 0);
    const running = step.hidden + step.parts[5] + step.parts[6];
    strips.append(make("div", {class: "strip-row"},
      make("span", {class: "bar-label"}, `rank ${rank.rank}`), strip,
      make("span", {class: "strip-value small"},
        `hidden ${formatTime(step.hidden)} (${formatShare(
          running === 0 ? 0 : step.hidden / running, 0)})`,
        make("br"), `exposed ${formatTime(exposed)}`)));
  }
  return make("div", {class: "card", id: "overlap"},
    make("h2", {}, `Overlap with computing: step ${detail.number}`),
    make("p", {class: "quiet"}, "A step of median length. Above: the " +
      "application. Below: the buckets of gradients that are reduced. Exposed " +
      "is all waiting of the application, with or without a bucket."),
    make("p", {class: "legend-line small"},
      swatch(PALETTE.blue), "above: computing ",
      swatch(PALETTE.orange), "input ",
      swatch(PALETTE.vermillion), "waiting for gradients ",
      swatch(PALETTE.green), "below: bucket, hidden ",
      swatch(PALETTE.sky), "bucket, exposed"), strips);
}

// Cuts [from, to) where the application started or stopped to wait, into
// [from, to, whether it waited].
function bucketPieces(from, to, waits) {
  const cuts = [from, to];
  for (const [start, end] of waits) {
    for (const cut of [start, end]) if (cut > from && cut < to) cuts.push(cut);
  }
  cuts.sort((a, b) => a - b);
  const pieces = [];
  for (let i = 0; i + 1 < cuts.length; ++i) {
    const middle = (cuts[i] + cuts[i + 1]) / 2;
    pieces.push([cuts[i], cuts[i + 1],
      waits.some(([start, end]) => start <= middle && middle < end)]);
  }
  return pieces;
}

function ranksCard() {
  const {columns, rows: ranks} = facts.step.stragglers;
  return make("div", {class: "card"}, make("h2", {}, "By rank"),
    make("table", {}, make("thead", {}, make("tr", {}, ...columns.map(
      (text) => make("th", {scope: "col"}, text)))),
    make("tbody", {}, ...ranks.map((cells) => make("tr", {}, ...cells.map(
      (text, i) => make("td", {class: i < 2 ? "" : "number"}, text)))))));
}
