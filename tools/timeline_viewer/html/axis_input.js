// Handles the user's input on the time axis (mouse, wheel, keys, search), and
// shows details of the event under the pointer.

// The details of slice `index` of `row`: a list of [label, text].
function factsOfSlice(row, index) {
  const said = row.details(index);
  const start = row.slices.start[index];
  const list = [["duration", formatTime(row.slices.duration[index])],
    ["start", `${(start / 1e6).toLocaleString("en-US",
      {minimumFractionDigits: 3, maximumFractionDigits: 3})} ms`]];
  const process = facts.processes.find((known) => known.pid === row.pid);
  list.push(["track", `${labelOfProcess(process)}, ${row.track || row.tid}`]);
  if (said.text !== undefined) {
    list.push([row.tid >= FIRST_TENSOR_TRACK ? "tensor" : "text", said.text]);
  }
  if (said.step !== undefined) list.push(["step", `${said.step}`]);
  if (said.bucket !== undefined) list.push(["bucket", `${said.bucket}`]);
  if (said.tensors !== undefined) list.push(["tensors", `${said.tensors}`]);
  if (said.bytes !== undefined) list.push(["bytes", formatBytes(said.bytes)]);
  if (said.last_rank !== undefined && said.last_rank >= 0) {
    list.push(["last rank", `${said.last_rank}` + (said.lateness_us > 0 ?
      `, ${formatTime(said.lateness_us * 1000)} after the rank before` : "")]);
  }
  if (said.picked_up_us !== undefined) {
    list.push(["picked up",
      `${formatTime(said.picked_up_us * 1000)} after submission`]);
  }
  return list;
}

function nameOfSlice(row, index) {
  return facts.names[row.slices.name[index]] || "(no name)";
}

function listFacts(list) {
  return make("dl", {}, ...list.flatMap(([label, text]) =>
    [make("dt", {}, label), make("dd", {}, text)]));
}

function showDetails(axis) {
  const panel = byId("details");
  if (axis.selected === null) {
    panel.replaceChildren(kindLegend());
    return;
  }
  const {row, index} = axis.selected;
  const name = nameOfSlice(row, index);
  panel.replaceChildren(
    make("strong", {}, swatch(colourOfName(name)), name,
      axis.bucket >= 0 ? make("span", {class: "quiet small"},
        "its bucket is highlighted") : ""),
    listFacts(factsOfSlice(row, index)));
}

// The kinds of events that this trace has.
function kindLegend() {
  const seen = new Set();
  for (const [name] of facts.summary) seen.add(kindOf(name));
  const legend = make("p", {class: "legend-line small quiet"});
  for (const kind of KINDS) {
    if (seen.has(kind)) legend.append(swatch(kind.colour), `${kind.label} `);
  }
  return make("div", {class: "split"}, legend, make("span",
    {class: "small quiet"}, "Click an event for its details. ",
    make("kbd", {}, "?"), " lists the keys."));
}

class AxisInput {
  constructor(axis) {
    this.axis = axis;
    this.drag = null;
    this.listen();
    this.listenToToolbar();
    showDetails(axis);
  }

  timeAt(x) {
    return this.axis.window.start + x / this.axis.width * this.axis.window.width;
  }

  listen() {
    const chart = byId("chart");
    const tracks = byId("tracks");
    chart.addEventListener("wheel", (event) => this.onWheel(event),
      {passive: false});
    chart.addEventListener("pointerdown", (event) => this.startDrag(event));
    chart.addEventListener("pointermove", (event) => this.onMove(event));
    chart.addEventListener("pointerup", (event) => this.endDrag(event));
    chart.addEventListener("pointerleave", () => hideTooltip());
    chart.addEventListener("dblclick", () => this.zoomToSelected());
    tracks.addEventListener("scroll", () => this.axis.redraw());
    new ResizeObserver(() => this.axis.redraw()).observe(tracks);
    const minimap = byId("minimap");
    const moveTo = (event) => {
      if (event.buttons === 0 || this.axis.all === undefined) return;
      const all = this.axis.all;
      const at = all.start + event.offsetX / this.axis.width * all.width;
      const half = this.axis.window.width / 2;
      this.axis.window.set(at - half, at + half);
      this.axis.redraw();
    };
    minimap.addEventListener("pointerdown", moveTo);
    minimap.addEventListener("pointermove", moveTo);
  }

  listenToToolbar() {
    const axis = this.axis;
    const on = (id, act) => byId(id).addEventListener("click", act);
    on("zoom-in", () => this.zoom(0.5));
    on("zoom-out", () => this.zoom(2));
    on("zoom-all", () => this.showAll());
    on("previous-step", () => axis.moveByStep(-1));
    on("next-step", () => axis.moveByStep(1));
    on("previous-hit", () => axis.stepHit(-1));
    on("next-hit", () => axis.stepHit(1));
    on("banner-close", () => axis.closeMark());
    const field = byId("search");
    field.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => axis.find(field.value), 120);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        clearTimeout(this.typing);
        if (axis.search.text !== field.value) axis.find(field.value);
        axis.stepHit(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        field.value = "";
        axis.find("");
        byId("chart").focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  onWheel(event) {
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX :
      event.deltaX;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.axis.window.move(sideways / 1000);
    } else {
      // A notch of a wheel is 100 or 120 px; a line is about 16 px.
      const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
      this.axis.window.zoom(1.0025 ** Math.min(Math.max(pixels, -400), 400),
        this.timeAt(event.offsetX));
    }
    this.axis.redraw();
  }

  startDrag(event) {
    if (event.button !== 0) return;
    this.drag = {x: event.clientX, y: event.clientY, moved: false,
      start: this.axis.window.start, end: this.axis.window.end,
      top: byId("tracks").scrollTop};
    byId("chart").setPointerCapture(event.pointerId);
  }

  onMove(event) {
    if (this.drag === null) {
      this.showTooltip(event);
      return;
    }
    const [dx, dy] = [event.clientX - this.drag.x, event.clientY - this.drag.y];
    if (Math.abs(dx) + Math.abs(dy) > 4) this.drag.moved = true;
    if (!this.drag.moved) return;
    hideTooltip();
    const window = this.axis.window;
    const time = dx / this.axis.width * window.width;
    window.set(this.drag.start - time, this.drag.end - time);
    byId("tracks").scrollTop = this.drag.top - dy;
    this.axis.redraw();
  }

  endDrag(event) {
    const moved = this.drag !== null && this.drag.moved;
    this.drag = null;
    if (!moved) this.axis.select(this.sliceUnder(event));
  }

  sliceUnder(event) {
    const y = event.offsetY + byId("tracks").scrollTop;
    const band = this.axis.bandAt(y);
    if (band === undefined || band.kind === "chart") return null;
    const at = rowAt(band, y);
    if (at < 0) return null;
    const tolerance = 3 / this.axis.width * this.axis.window.width;
    const index = sliceAt(band.rows[at], this.timeAt(event.offsetX), tolerance);
    return index < 0 ? null : {row: band.rows[at], index};
  }

  showTooltip(event) {
    const y = event.offsetY + byId("tracks").scrollTop;
    const band = this.axis.bandAt(y);
    if (band !== undefined && band.kind === "chart") {
      const time = this.timeAt(event.offsetX);
      placeTooltip(event, make("strong", {}, `${band.group.label}: ${band.label}`),
        listFacts(band.chart.lines.slice(0, 8).map((line) => [line.name,
          `${formatValue(valueAt(line, time))} ${band.chart.unit}`])));
      return;
    }
    const slice = this.sliceUnder(event);
    if (slice === null) {
      hideTooltip();
      return;
    }
    placeTooltip(event, make("strong", {}, nameOfSlice(slice.row, slice.index)),
      listFacts(factsOfSlice(slice.row, slice.index)));
  }

  zoom(factor) {
    const window = this.axis.window;
    window.zoom(factor, (window.start + window.end) / 2);
    this.axis.redraw();
  }

  showAll() {
    this.axis.window.showAll();
    this.axis.redraw();
  }

  zoomToSelected() {
    if (this.axis.selected === null) return;
    const {row, index} = this.axis.selected;
    const start = row.slices.start[index];
    const width = Math.max(row.end(index) - start, SHORTEST_WINDOW);
    this.axis.window.set(start - width * 0.2, start + width * 1.2);
    this.axis.redraw();
  }

  // Handles keys while the axis is shown. Returns whether `event` was such a
  // key.
  onKey(event) {
    const axis = this.axis;
    const move = (share) => {
      axis.window.move(share);
      axis.redraw();
    };
    const scroll = (rows) => {
      byId("tracks").scrollTop += rows * ROW_HEIGHT;
    };
    const keys = {
      "w": () => this.zoom(1 / 1.5), "+": () => this.zoom(1 / 1.5),
      "=": () => this.zoom(1 / 1.5), "s": () => this.zoom(1.5),
      "-": () => this.zoom(1.5), "a": () => move(-0.15), "d": () => move(0.15),
      "ArrowLeft": () => move(-0.15), "ArrowRight": () => move(0.15),
      "ArrowUp": () => scroll(-3), "ArrowDown": () => scroll(3),
      "PageUp": () => scroll(-20), "PageDown": () => scroll(20),
      "Home": () => this.showAll(), "f": () => this.zoomToSelected(),
      "n": () => axis.stepHit(1), "p": () => axis.stepHit(-1),
      "[": () => axis.moveByStep(-1), "]": () => axis.moveByStep(1),
      "Escape": () => {
        axis.closeMark();
        axis.select(null);
      },
    };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!(key in keys)) return false;
    hideTooltip();
    keys[key]();
    return true;
  }
}

function placeTooltip(event, ...content) {
  const tip = byId("tooltip");
  tip.replaceChildren(...content);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const x = event.clientX + 14 + width > innerWidth ?
    event.clientX - width - 10 : event.clientX + 14;
  const y = Math.min(event.clientY + 14, innerHeight - height - 6);
  tip.style.left = `${Math.max(x, 4)}px`;
  tip.style.top = `${Math.max(y, 4)}px`;
}

function hideTooltip() {
  byId("tooltip").hidden = true;
}
