// The fourth view: where the time of all events went, by name.

// `show` = {nameOnAxis(name)}.
function buildEvents(show) {
  const view = byId("events");
  const table = new EventTable(show);
  view.append(make("div", {class: "card"},
    make("h2", {}, "Events by name"),
    make("p", {class: "quiet"}, "Self time is wall time less that of the " +
      "events inside. Tensors are in flight side by side, so that wall times " +
      "can add up to far more than has passed. Click a name to find its " +
      "events on the time axis, a heading to sort."),
    table.element));
}

class EventTable {
  constructor(show) {
    this.show = show;
    this.list = facts.summary.map(([name, wall, self, count]) => ({
      name: name || "(no name)", key: name, wall, self, count,
      average: count === 0 ? 0 : wall / count}));
    this.sort = {key: "self", down: true};
    this.body = make("tbody", {});
    this.heads = [["name", "Name"], ["wall", "Wall duration"],
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
    const most = Math.max(...this.list.map((item) => item.self), 1);
    this.body.replaceChildren(...[...this.list].sort(order).map((item) =>
      make("tr", {},
        make("th", {scope: "row"}, swatch(colourOfName(item.key)),
          make("button", {class: "name",
            onclick: () => this.show.nameOnAxis(item.key)}, item.name)),
        make("td", {class: "number"}, formatTime(item.wall)),
        make("td", {class: "number self"},
          make("span", {class: "meter",
            style: `width:${item.self / most * 100}%`}),
          make("span", {}, formatTime(item.self))),
        make("td", {class: "number"}, formatTime(item.average)),
        make("td", {class: "number"}, formatCount(item.count)))));
  }
}
