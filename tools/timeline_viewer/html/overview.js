// The first view: the run, the parts of a step, and the findings.

// `show` = {findingOnAxis(index)}: called by a click.
function buildOverview(show) {
  const view = byId("overview");
  view.append(runTiles());
  if (facts.run.warnings.length > 0) view.append(warningsCard());
  view.append(make("div", {class: "columns"},
    make("div", {}, partsCard()), make("div", {}, findingsCard(show))));
}

function tile(label, value, note) {
  return make("div", {class: "tile"}, make("div", {class: "quiet"}, label),
    make("div", {class: "value"}, value),
    make("div", {class: "quiet small"}, note || ""));
}

function runTiles() {
  const run = facts.run;
  const list = make("div", {class: "tiles"});
  if (run.ranks > 0) {
    list.append(tile("Ranks", formatCount(run.ranks),
      run.ranks < run.size ? `of ${run.size}; the others are missing` :
        `on ${run.hosts.length} ${run.hosts.length === 1 ? "host" : "hosts"}: ` +
        shortList(run.hosts, 3)));
  } else {
    list.append(tile("Processes", formatCount(facts.processes.length),
      "of another program"));
  }
  const cores = coresOfRanks();
  if (cores.length > 0) {
    list.append(tile("Cores", shortList(cores.map(([cpus]) => cpus), 3),
      shortList(cores.map(([cpus, ranks]) =>
        `${cpus}: rank ${shortList(ranks, 3)}`), 3)));
  }
  list.append(tile("Time span", formatTime(run.span_ns), ""));
  if (facts.step.known) {
    const ranks = new Set(steps.map((step) => step.rank)).size;
    list.append(tile("Steps", formatCount(steps.length / ranks),
      `${formatTime(meanOf(steadySteps, (step) => step.duration))} each`));
  }
  list.append(tile("Events", formatCount(run.events),
    run.dropped > 0 ? `${formatCount(run.dropped)} more were dropped` :
      "none was dropped"));
  list.append(tile("Trace", baseName(run.path),
    run.files.length > 1 ?
      `${run.files.length} per-rank files, not merged` : ""));
  return list;
}

// The cores that ranks may use: [["0-3", ["0", "2"]], ...].
function coresOfRanks() {
  const known = facts.processes.filter(
    (process) => process.is_rank && process.facts.cpu_list);
  return [...groupBy(known, (process) => process.facts.cpu_list)].map(
    ([cpus, ranks]) => [cpus, ranks.map((process) => `${process.pid}`)]);
}

function shortList(texts, most) {
  const rest = texts.length - most;
  return texts.slice(0, most).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

function meanOf(list, value) {
  let sum = 0;
  for (const item of list) sum += value(item);
  return list.length === 0 ? 0 : sum / list.length;
}

function warningsCard() {
  return make("div", {class: "card warning", role: "note"},
    make("strong", {}, `\u26a0 ${facts.run.warnings.length === 1 ?
      "Warning" : "Warnings"}`),
    make("ul", {}, ...facts.run.warnings.map((text) => make("li", {}, text))));
}

// The sums of the parts over the steps in `list`.
function sumParts(list) {
  return facts.step.parts.map(
    (_, i) => list.reduce((sum, step) => sum + step.parts[i], 0));
}

// A bar of 100 % whose segments have labels if they are wide enough.
function partsBar(label, list) {
  const sums = sumParts(list);
  const total = sums.reduce((sum, part) => sum + part, 0) || 1;
  const texts = sums.map((part, i) =>
    `${facts.step.parts[i]} ${formatShare(part / total)}`);
  const bar = make("div", {class: "bar", role: "img",
    "aria-label": `${label}: ${texts.join(", ")}`});
  sums.forEach((part, i) => {
    if (part === 0) return;
    const share = part / total;
    const colour = PARTS[i].colour;
    bar.append(make("span", {
      style: `width:${share * 100}%;background:${colour};color:${inkOn(colour)}`,
      title: `${texts[i]}, ${formatTime(part / list.length)} per step`,
    }, share >= 0.06 ? `${Math.round(share * 100)}` : ""));
  });
  return make("div", {class: "bar-row"}, make("span", {class: "bar-label"}, label),
    bar, make("span", {class: "bar-value"}, formatTime(total / list.length)));
}

function partsCard() {
  const card = make("div", {class: "card", id: "parts"});
  if (!facts.step.known) {
    card.append(make("h2", {}, "No training steps"), make("p", {},
      "This trace has no training steps. So the parts of a step, and the rank " +
      "for which the others wait, are unknown. Record a trace with " +
      "hvdlite::DistributedOptimizer and HVDLITE_TIMELINE. The time axis and " +
      "the table of events show all recorded events."));
    return card;
  }
  const mean = meanOf(steadySteps, (step) => step.duration);
  card.append(make("h2", {}, `A step takes ${formatTime(mean)}`));
  if (!facts.step.knows_waits) {
    card.append(make("p", {}, "The trace does not show when the application " +
      "waited for gradients: " + (facts.step.from_profiler ?
        "data plane is the time in which a collective and no operator runs." :
        "exposed communication is unknown, and its time counts as computing.")));
  }
  const left = steps.length - steadySteps.length;
  card.append(make("p", {class: "quiet"}, `Mean of ${
    formatCount(new Set(steadySteps.map((step) => step.number)).size)} steps` +
    `${left > 0 ? "; the first is left out, as it includes the start" : ""}. ` +
    "The numbers are percent."));
  const ranks = [...new Set(steadySteps.map((step) => step.rank))];
  const bars = make("div", {class: "bars", tabindex: "0", "aria-label": "Bars"});
  bars.append(partsBar("all", steadySteps));
  const byRank = groupBy(steadySteps, (step) => step.rank);
  for (const rank of ranks.sort((a, b) => a - b)) {
    bars.append(partsBar(`rank ${rank}`, byRank.get(rank)));
  }
  card.append(bars, partsLegend());
  return card;
}

function groupBy(list, key) {
  const groups = new Map();
  for (const item of list) {
    const of = key(item);
    if (!groups.has(of)) groups.set(of, []);
    groups.get(of).push(item);
  }
  return groups;
}

function partsLegend() {
  const sums = sumParts(steadySteps);
  const total = sums.reduce((sum, part) => sum + part, 0) || 1;
  const body = make("tbody", {});
  sums.forEach((part, i) => {
    body.append(make("tr", {},
      make("th", {scope: "row"}, swatch(PARTS[i].colour), facts.step.parts[i]),
      make("td", {class: "number"}, formatTime(part / steadySteps.length)),
      make("td", {class: "number"}, formatShare(part / total)),
      make("td", {class: "quiet"}, PARTS[i].means)));
  });
  body.append(make("tr", {class: "total"}, make("th", {scope: "row"}, "step"),
    make("td", {class: "number"}, formatTime(total / steadySteps.length)),
    make("td", {class: "number"}, formatShare(1)), make("td", {})));
  return make("table", {class: "legend"}, body);
}

function findingsCard(show) {
  const card = make("div", {class: "card", id: "findings"},
    make("h2", {}, facts.findings.length === 0 ? "No findings" :
      `What costs most time`));
  if (facts.findings.length === 0) {
    card.append(make("p", {}, facts.step.known && facts.step.knows_waits ?
      "No cause costs more than 3 % of a step. Waiting for ranks is reported " +
      "from 8 % on, because steps always differ a little." :
      "The trace records too little for findings."));
  }
  facts.findings.forEach((finding, i) => {
    card.append(make("article", {class: "finding"},
      make("div", {class: "share"}, formatShare(finding.share, 0),
        make("span", {class: "quiet small"},
          finding.of_run ? "of the run" : "of a step")),
      make("div", {},
        make("h3", {}, finding.title),
        make("ul", {}, ...finding.evidence.map(
          (text) => make("li", {}, text))),
        make("p", {}, make("strong", {}, "Remedy: "), finding.remedy),
        make("button", {class: "finding-link",
          onclick: () => show.findingOnAxis(i)}, "Show on the time axis"))));
  });
  if (facts.findings.length > 1) {
    card.append(make("p", {class: "quiet small"},
      "Shares do not add up: two findings can cost the same moment."));
  }
  return card;
}
