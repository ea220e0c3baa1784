// The third view: all processes on one time axis. axis_input.js handles mouse
// and keys.

class Axis {
  constructor() {
    this.window = new TimeWindow(facts.run.span_ns);
    this.groups = makeGroups();
    this.search = new Search();
    this.selected = null;  // {row, index}
    this.bucket = -1;       // the highlighted bucket
    this.mark = null;      // {start, end, pid, text} of a link
    this.painted = 0;      // rectangles of the last frame
    this.frames = 0;
    this.frameTime = 0;    // ms that the last frame took
    this.waiting = false;  // the next frame has been requested
    const first = steps.length === 0 ? 0 : steps[0].rank;
    this.marks = steps.filter((step) => step.rank === first)
      .map(({start, number}) => ({start, number}));
    for (const id of ["previous-step", "next-step"]) {
      byId(id).hidden = this.marks.length === 0;
    }
    this.layOut();
  }

  // ---- Bands.

  layOut() {
    Object.assign(this, layOutBands(this.groups));
    byId("tracks-content").style.height = `${this.height}px`;
    byId("gutter").replaceChildren(
      ...this.bands.map((band) => this.labelOf(band)));
    this.redraw();
  }

  labelOf(band) {
    const style = `top:${band.y}px;height:${band.height}px`;
    if (band.kind === "head" || band.kind === "tensors") {
      return make("button", {
        class: `label ${band.kind}`, style, "aria-expanded": `${band.open}`,
        title: band.label,
        onclick: () => this.toggle(band.group, band.kind === "tensors"),
      }, make("span", {"aria-hidden": "true"}, band.open ? "\u25be" : "\u25b8"),
      make("span", {class: "grow"}, band.label),
      make("span", {class: "quiet small"}, band.note || ""));
    }
    if (band.kind === "chart") {
      return make("div", {class: "label chart", style, title: band.label},
        make("div", {}, band.label),
        make("div", {class: "quiet small"}, ...band.chart.lines.slice(0, 3)
          .flatMap((line, i) => [make("span", {class: "line-key",
            style: `border-top:2px ${i % 2 === 0 ? "solid" : "dashed"} ${
              chartColour(i)}`}), `${line.name} `])));
    }
    return make("div", {class: "label", style, title: band.label}, band.label);
  }

  toggle(group, tensors) {
    if (tensors) group.tensorsOpen = !group.tensorsOpen;
    else group.open = !group.open;
    const at = [...byId("gutter").children].indexOf(document.activeElement);
    this.layOut();
    if (at >= 0) byId("gutter").children[at].focus();
  }

  // Opens the groups that hide `row`, and scrolls to it.
  reveal(row) {
    const group = this.groups.find((known) => known.process.pid === row.pid);
    const inTensors = group.tensors.some((track) => track.rows.includes(row));
    if (!group.open || (inTensors && !group.tensorsOpen)) {
      group.open = true;
      group.tensorsOpen = group.tensorsOpen || inTensors;
      this.layOut();
    }
    const band = this.bands.find(
      (known) => known.rows !== undefined && known.rows.includes(row));
    this.scrollTo(band.y, band.height);
  }

  scrollTo(y, height) {
    const tracks = byId("tracks");
    if (y < tracks.scrollTop ||
      y + height > tracks.scrollTop + tracks.clientHeight) {
      tracks.scrollTop = Math.max(0, y - tracks.clientHeight / 3);
    }
  }

  bandAt(y) {
    return this.bands.find((band) => y >= band.y && y < band.y + band.height);
  }

  // ---- Moving about.

  // Shows [start, end) with some room around it, and its text.
  showMark(mark) {
    this.mark = mark;
    const room = Math.max((mark.end - mark.start) * 0.15, SHORTEST_WINDOW);
    this.window.set(mark.start - room, mark.end + room);
    byId("banner").hidden = false;
    byId("banner").firstElementChild.textContent = mark.text;
    const group = this.groups.find((known) => known.process.pid === mark.pid);
    if (group !== undefined) {
      group.open = true;
      this.layOut();
      const band = this.bands.find((known) => known.group === group);
      byId("tracks").scrollTop = band.y;
    }
    this.redraw();
  }

  closeMark() {
    this.mark = null;
    byId("banner").hidden = true;
    this.redraw();
  }

  showStep(rank, number, text) {
    const step = steps.find(
      (known) => known.rank === rank && known.number === number);
    if (step === undefined) return;
    this.showMark({start: step.start, end: step.start + step.duration,
      pid: rank, text});
  }

  // Moves to the step before or after the one in the middle of the window.
  moveByStep(direction) {
    if (this.marks.length === 0) return;
    const first = steps[0].rank;
    const middle = (this.window.start + this.window.end) / 2;
    let at = -1;
    while (at + 1 < this.marks.length && this.marks[at + 1].start <= middle) ++at;
    const to = Math.min(Math.max(at + direction, 0), this.marks.length - 1);
    const step = steps.find((known) => known.rank === first &&
      known.number === this.marks[to].number);
    const room = step.duration * 0.1;
    this.window.set(step.start - room, step.start + step.duration + room);
    this.redraw();
  }

  select(chosen) {
    this.selected = chosen;
    this.bucket = chosen === null ? -1 :
      chosen.row.saidOf("bucket", chosen.index);
    showDetails(this);
    this.redraw();
  }

  find(text) {
    this.search.find(text);
    this.showHits();
    this.redraw();
  }

  stepHit(direction) {
    const hit = this.search.step(direction, this.window.start);
    this.showHits();
    if (hit === null) return;
    const start = hit.row.slices.start[hit.index];
    const end = hit.row.end(hit.index);
    const share = (end - start) / this.window.width;
    // The scale is kept if the event is easy to see in it.
    const width = share > 0.02 && share < 1 ? this.window.width :
      Math.max((end - start) * 8, SHORTEST_WINDOW);
    if (share <= 0.02 || share >= 1 || start < this.window.start ||
      end > this.window.end) {
      const middle = (start + end) / 2;
      this.window.set(middle - width / 2, middle + width / 2);
    }
    this.reveal(hit.row);
    this.select(hit);
  }

  showHits() {
    const {active, count} = this.search;
    byId("hits").textContent = !active ? "" : count === 0 ? "no hits" :
      this.search.current === null ? `${formatCount(count)} hits` :
        `${formatCount(this.search.place())} of ${formatCount(count)}`;
  }

  // ---- Drawing.

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!byId("axis").hidden) this.draw();
    });
  }

  draw() {
    const begin = performance.now();
    const tracks = byId("tracks");
    const width = tracks.clientWidth - byId("gutter").offsetWidth;
    const height = tracks.clientHeight;
    if (width <= 0 || height <= 0) return;
    this.width = width;
    const colours = themeColours();
    const context = prepareCanvas(byId("chart"), width, height);
    const top = tracks.scrollTop;
    context.translate(0, -top);
    context.font = FONT;
    context.textBaseline = "middle";
    const painter = new RowPainter(context, this.window, width, {
      search: this.search, selected: this.selected, bucket: this.bucket, colours});
    const seen = this.bands.filter(
      (band) => band.y + band.height > top && band.y < top + height);
    for (const band of seen) {
      if (band.kind === "head" || band.kind === "tensors") {
        context.fillStyle = colours.head;
        context.fillRect(0, band.y, width, band.height);
      }
    }
    this.drawSteps(context, top, height, colours);
    this.shadeMark(context, top, height, colours);
    for (const band of seen) {
      if (band.kind === "chart") {
        drawChart(context, band.chart, band.y, band.height, this.window, width,
          colours);
        continue;
      }
      (band.rows || []).forEach((row, i) => {
        const box = rowBox(band, i);
        painter.paint(row, box.y, box.height);
      });
    }
    this.drawMark(context, top, height, colours);
    this.painted = painter.painted;
    const step = drawRuler(byId("ruler"), this.window, width, this.marks);
    this.drawMinimap(width, colours);
    byId("window").textContent =
      `${formatMoment(this.window.start, step / 10)} \u2013 ` +
      `${formatMoment(this.window.end, step / 10)}, ` +
      formatTime(this.window.width);
    ++this.frames;
    this.frameTime = performance.now() - begin;
  }

  drawSteps(context, top, height, colours) {
    const scale = this.width / this.window.width;
    if (scale * this.window.length < 6 * this.marks.length) return;  // too close
    context.fillStyle = colours.line;
    for (const {start} of this.marks) {
      const x = (start - this.window.start) * scale;
      if (x >= 0 && x <= this.width) context.fillRect(x, top, 1, height);
    }
  }

  shadeMark(context, top, height, colours) {
    if (this.mark === null) return;
    const scale = this.width / this.window.width;
    context.globalAlpha = 0.12;
    context.fillStyle = colours.mark;
    context.fillRect((this.mark.start - this.window.start) * scale, top,
      (this.mark.end - this.mark.start) * scale, height);
    context.globalAlpha = 1;
  }

  drawMark(context, top, height, colours) {
    if (this.mark === null) return;
    const scale = this.width / this.window.width;
    const x = (this.mark.start - this.window.start) * scale;
    const width = Math.max((this.mark.end - this.mark.start) * scale, 2);
    context.fillStyle = colours.mark;
    context.fillRect(x - 1, top, 2, height);
    context.fillRect(x + width - 1, top, 2, height);
  }

  // A small picture of the whole trace (drawn once), with the window in it.
  drawMinimap(width, colours) {
    const height = 34;
    const ratio = window.devicePixelRatio || 1;
    const key = `${width} ${ratio} ${colours.card}`;
    if (this.minimapKey !== key) {
      this.minimapKey = key;
      this.minimap = document.createElement("canvas");
      const context = prepareCanvas(this.minimap, width, height);
      const all = new TimeWindow(facts.run.span_ns);
      const painter = new RowPainter(context, all, width,
        {search: new Search(), selected: null, bucket: -1, colours});
      const shown = this.groups.slice(0, 8)
        .flatMap((group) => group.tracks.flatMap((track) => track.rows))
        .filter((row) => row.count > 0).slice(0, 32);
      shown.forEach((row, i) => painter.paint(row,
        1 + i * (height - 2) / shown.length,
        Math.max((height - 2) / shown.length - 0.2, 0.8)));
      this.all = all;
    }
    const context = prepareCanvas(byId("minimap"), width, height);
    context.drawImage(this.minimap, 0, 0, width, height);
    const scale = width / this.all.width;
    const left = (this.window.start - this.all.start) * scale;
    const right = (this.window.end - this.all.start) * scale;
    context.fillStyle = colours.back;
    context.globalAlpha = 0.65;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    context.strokeRect(Math.max(left, 1), 1,
      Math.max(Math.min(right, width - 1) - Math.max(left, 1), 3), height - 2);
  }
}
