// Builds the page from its views.
//
// window.hvdlite is the state of the page for programs such as its test. Times
// are ns since the trace's first event:
//   readyMs        from the navigation's start until the page is usable
//   view, theme    "overview", "stragglers", "axis" or "events"; "light", "dark"
//   events, rows   of the trace
//   window         {start, end} of the time axis
//   painted        rectangles of the axis's last frame; frames, frameMs
//   search         {text, count, place}: number of hits, and the current one
//   selected       {name, start, duration, pid, track} of the event, or null
//   mark           {start, end, pid, text} of the last link, or null
//   groups         [{label, open, tensorsOpen}]
//   rowBox(i)      if row i is open: {x, y, height} of its left end on the page,
//                  and the names of its events; else null
//   errors         messages of uncaught errors

const VIEWS = ["overview", "stragglers", "axis", "events"];

class Page {
  constructor() {
    this.errors = [];
    addEventListener("error", (event) => this.errors.push(event.message));
    document.title = `${baseName(facts.run.path)} - hvdlite timeline`;
    byId("trace-name").textContent = baseName(facts.run.path);
    this.setTheme(this.storedTheme());
    buildOverview({findingOnAxis: (i) => this.findingOnAxis(i)});
    this.heatMap = buildStragglers({
      stepOnAxis: (rank, number) => this.stepOnAxis(rank, number)});
    buildEvents({nameOnAxis: (name) => this.nameOnAxis(name)});
    this.axis = new Axis();
    this.input = new AxisInput(this.axis);
    buildHelp();
    this.listen();
    // Without steps, the overview shows little.
    this.open(facts.step.known ? "overview" : "axis");
  }

  open(view) {
    this.view = view;
    for (const name of VIEWS) {
      byId(name).hidden = name !== view;
      const tab = byId(`tab-${name}`);
      tab.setAttribute("aria-selected", `${name === view}`);
      tab.tabIndex = name === view ? 0 : -1;
    }
    hideTooltip();
    this.redraw();
  }

  redraw() {
    if (this.view === "axis") this.axis.redraw();
    if (this.view === "stragglers" && this.heatMap) this.heatMap.draw();
  }

  findingOnAxis(i) {
    const finding = facts.findings[i];
    this.open("axis");
    this.axis.showMark({start: finding.start, end: finding.end,
      pid: finding.rank, text: `Finding: ${finding.title}`});
    byId("chart").focus();
  }

  stepOnAxis(rank, number) {
    this.open("axis");
    this.axis.showStep(rank, number, `Step ${number} of rank ${rank}`);
    byId("chart").focus();
  }

  nameOnAxis(name) {
    this.open("axis");
    byId("search").value = name;
    this.axis.find(name);
    byId("search").focus();
  }

  listen() {
    for (const name of VIEWS) {
      byId(`tab-${name}`).addEventListener("click", () => this.open(name));
    }
    byId("theme").addEventListener("click", () =>
      this.setTheme(this.theme === "dark" ? "light" : "dark", true));
    byId("help-button").addEventListener("click", () => byId("help").showModal());
    addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("resize", () => this.redraw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.setTheme(this.storedTheme()));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) {
      return;
    }
    const target = event.target;
    if (target instanceof HTMLInputElement) return;
    if (target.getAttribute("role") === "tab" && this.moveTab(event)) return;
    const view = VIEWS[Number(event.key) - 1];
    if (event.key === "?") byId("help").showModal();
    else if (event.key === "/") {
      this.open("axis");
      byId("search").focus();
      byId("search").select();
    } else if (view !== undefined) this.open(view);
    else if (this.view !== "axis" || !this.input.onKey(event)) return;
    event.preventDefault();
  }

  moveTab(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by === undefined) return false;
    const at = VIEWS.indexOf(this.view) + by + VIEWS.length;
    this.open(VIEWS[at % VIEWS.length]);
    byId(`tab-${this.view}`).focus();
    event.preventDefault();
    return true;
  }

  // The last choice of the user, otherwise the preference of the system.
  storedTheme() {
    let stored = null;
    try {
      stored = localStorage.getItem("hvdlite-theme");
    } catch {
      // Some browsers do not store anything for local files.
    }
    if (stored === "dark" || stored === "light") return stored;
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  setTheme(theme, store = false) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
    if (store) {
      try {
        localStorage.setItem("hvdlite-theme", theme);
      } catch {
        // As above.
      }
    }
    if (this.axis !== undefined) this.redraw();
  }

  rowBox(i) {
    const band = this.axis.bands.find((known) => known.kind === "track" &&
      known.rows.includes(rows[i]));
    if (band === undefined || this.axis.width === undefined) return null;
    const box = rowBox(band, band.rows.indexOf(rows[i]));
    const chart = byId("chart").getBoundingClientRect();
    const names = rows[i].levels.length > 0 ?
      [...new Set(rows[i].levels[0].name)] :
      [...new Set(rows[i].slices.name)];
    return {x: chart.left, y: chart.top + box.y - byId("tracks").scrollTop,
      height: box.height, names: names.map((name) => facts.names[name])};
  }

  state() {
    const {window, search, selected, mark, groups} = this.axis;
    return {
      readyMs: this.readyMs, view: this.view, theme: this.theme,
      events: facts.run.events, rows: rows.length,
      window: {start: window.start, end: window.end},
      painted: this.axis.painted, frames: this.axis.frames,
      frameMs: this.axis.frameTime,
      search: {text: search.text, count: search.count,
        place: search.active ? search.place() : 0},
      selected: selected === null ? null : {
        name: nameOfSlice(selected.row, selected.index),
        start: selected.row.slices.start[selected.index],
        duration: selected.row.slices.duration[selected.index],
        pid: selected.row.pid, track: selected.row.track},
      mark,
      groups: groups.map(({label, open, tensorsOpen}) =>
        ({label, open, tensorsOpen})),
      errors: this.errors,
    };
  }
}

function buildHelp() {
  const keys = [["1 2 3 4", "the views"], ["wheel, W S, + \u2212", "zoom"],
    ["drag, A D, \u2190 \u2192, Shift and wheel", "move in time"],
    ["\u2191 \u2193, Page Up, Page Down", "move through the tracks"],
    ["Home", "show the whole trace"], ["[ ]", "the previous, the next step"],
    ["/", "search; Enter and Shift Enter go through the hits"],
    ["n p", "the next hit, the previous hit"],
    ["click", "details of an event; highlights its bucket on all ranks"],
    ["double click, F", "zoom to the event"],
    ["Esc", "remove selection and mark"], ["?", "this help"]];
  const kinds = make("div", {class: "help-kinds"}, ...KINDS.map((kind) =>
    make("span", {}, swatch(kind.colour), kind.label)));
  byId("help").append(make("h2", {id: "help-title"}, "Keys and colours"),
    listFacts(keys), kinds,
    make("p", {class: "quiet"}, "The names of other events decide their " +
      "colours. Events that are close together are drawn as one, in the " +
      "colour of the event that takes most time. A paler colour means that " +
      "less of the time is used."),
    make("form", {method: "dialog"}, make("button", {autofocus: true}, "Close")));
}

const page = new Page();
window.hvdlite = {};
for (const key of Object.keys(page.state())) {
  Object.defineProperty(window.hvdlite, key, {get: () => page.state()[key]});
}
window.hvdlite.rowBox = (i) => page.rowBox(i);
requestAnimationFrame(() => setTimeout(() => {
  page.readyMs = performance.now();
}));
