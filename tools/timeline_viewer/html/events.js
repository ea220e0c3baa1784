// The fourth view: the time of all events, by name.

// `show` = {nameOnAxis(name)}.
function buildEvents(show) {
  const view = byId("events");
  const table = new EventTable(show);
  view.append(make("div", {class: "card"},
    make("h2", {}, "Events by name"),
    make("p", {class: "quiet"}, "Covered: time in which at least one event of " +
      "the name was active on any rank. Wall duration: sum of the durations; " +
      "many tensors are in flight at once, so it can be far longer than the " +
      "run. Self time: wall duration without nested events. Click a name to " +
      "find its events on the time axis, and a heading to sort."),
    table.element));
}

class EventTable {
  constructor(show) {
    this.show = show;
    this.list = facts.summary.map(([name, covered, wall, self, count]) => ({
      name: name || "(no name)", key: name, covered, wall, self, count,
      average: count === 0 ? 0 : wall / count}));
    this.sort = {key: "covered", down: true};
    this.body = make("tbody", {});
    this.heads = [["name", "Name"], ["covered", "Covered"],
      ["wall", "Wall duration"],
      ["self", "Self time"], ["average", "Average wall duration"],
      ["count", "Occurrences"]].map(([key, label]) => ({key, label,
      cell: make("th", {scope: "col"}, make("button",
        {onclick: () => this.sortBy(key)}, label))}));
    this.element = make("table", {class: "events"},
      make("thead", {}, make("tr", {}, ...this.heads.map((head) => head.cell))),
      this.body);
    this.fill();
  }

  sortBy(key) {
    this.sort = {key, down: this.sort.key === key ? !this.sort.down :
      key !== "name"};
    this.fill();
  }

  fill() {
    const {key, down} = this.sort;
    const order = (a, b) => (key === "name" ? a.name.localeCompare(b.name) :
      a[key] - b[key]) * (down ? -1 : 1);
    for (const head of this.heads) {
      head.cell.setAttribute("aria-sort", head.key !== key ? "none" :
        down ? "descending" : "ascending");
    }
    const most = Math.max(...this.list.map((item) => item.covered), 1);
    this.body.replaceChildren(...[...this.list].sort(order).map((item) =>
      make("tr", {},
        make("th", {scope: "row"}, swatch(colourOfName(item.key)),
          make("button", {class: "name",
            onclick: () => this.show.nameOnAxis(item.key)}, item.name)),
        make("td", {class: "number covered"},
          make("span", {class: "meter",
            style: `width:${item.covered / most * 100}%`}),
          make("span", {}, formatTime(item.covered))),
        make("td", {class: "number"}, formatTime(item.wall)),
        make("td", {class: "number"}, formatTime(item.self)),
        make("td", {class: "number"}, formatTime(item.average)),
        make("td", {class: "number"}, formatCount(item.count)))));
  }
}
