// Texts, colours and elements.

// An element; `content` may be texts, which never become markup, and elements.
function make(tag, attributes, ...content) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") element.addEventListener("click", value);
    else if (value !== false && value !== undefined) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...content);
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

function formatCount(value) {
  return Math.round(value).toLocaleString("en-US");
}

// Such as "12.3 ms", with three or four significant digits.
function formatTime(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${significant(ns / 1e9)} s`;
  if (size >= 1e6) return `${significant(ns / 1e6)} ms`;
  if (size >= 1e3) return `${significant(ns / 1e3)} \u00b5s`;
  return `${Math.round(ns)} ns`;
}

function significant(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

// A time on the axis, with as many digits as tell `step` ns apart.
function formatMoment(ns, step) {
  const [unit, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] :
    step >= 100 ? [1e3, "\u00b5s"] : [1, "ns"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  const text = (ns / unit).toLocaleString("en-US",
    {minimumFractionDigits: digits, maximumFractionDigits: digits});
  return `${Number(text) === 0 ? text.replace("-", "") : text} ${name}`;
}

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    ++unit;
  }
  return `${unit === 0 ? bytes : significant(bytes)} ${units[unit]}`;
}

function formatShare(share, digits = 1) {
  return `${(share * 100).toFixed(digits)}\u202f%`;
}

// Colours that the colour-blind tell apart: Okabe and Ito's.
const PALETTE = {
  blue: "#0072b2", sky: "#56b4e9", green: "#009e73", orange: "#e69f00",
  vermillion: "#d55e00", purple: "#cc79a7", grey: "#8c8c8c",
};

// Of the parts of a step, in timeline::StepPart's order, with what they mean.
const PARTS = [
  {colour: PALETTE.blue, means: "all that is none of the below"},
  {colour: PALETTE.orange, means: "loading the next batch"},
  {colour: PALETTE.grey, means: "other work than training"},
  {colour: PALETTE.vermillion,
    means: "exposed: a rank's gradient is missing"},
  {colour: PALETTE.purple,
    means: "exposed: the batch has not begun"},
  {colour: PALETTE.sky, means: "exposed: it is being reduced"},
  {colour: PALETTE.green, means: "exposed: to and from the fusion buffer"},
];

// What kinds of events there are on the axis: the first that fits.
const KINDS = [
  {label: "waiting", colour: PALETTE.vermillion,
    fits: /^(WAIT_FOR_RANKS|WAIT_FOR_GRADIENTS|WAIT)$/},
  {label: "negotiation", colour: PALETTE.purple, fits: /^NEGOTIATE_/},
  {label: "copies", colour: PALETTE.green, fits: /^MEMCPY_/},
  {label: "whole batch", colour: "#5d7b93", fits: /_BATCH$/,
    but: /^LOAD_BATCH$/},
  {label: "input", colour: PALETTE.orange,
    fits: /^(LOAD_BATCH$|enumerate\(DataLoader)/},
  {label: "evaluation, commits", colour: PALETTE.grey,
    fits: /^(EVALUATE|COMMIT|CHECKPOINT)$/},
  {label: "computing", colour: PALETTE.blue, fits: /^(FORWARD|BACKWARD)$/},
  {label: "step", colour: "#6b6f76", fits: /^(TRAINING_STEP$|ProfilerStep#)/},
  {label: "data plane", colour: PALETTE.sky,
    fits: /(ALLREDUCE|BROADCAST|ALLGATHER|ALLTOALL|REDUCESCATTER|BARRIER|^gloo:|^mpi:|^nccl:|^ccl:)/},
];

// Of all other events, by their names: Tol's muted ones.
const OTHER_COLOURS = ["#44aa99", "#999933", "#aa4499", "#6699cc", "#882255",
  "#ddaa33", "#117733", "#cc6677", "#4477aa", "#88ccee"];

function kindOf(name) {
  return KINDS.find((kind) => kind.fits.test(name) &&
    !(kind.but && kind.but.test(name)));
}

function colourOfName(name) {
  const kind = kindOf(name);
  if (kind !== undefined) return kind.colour;
  let hash = 0;
  for (let i = 0; i < name.length; ++i) {
    hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
  }
  return OTHER_COLOURS[hash % OTHER_COLOURS.length];
}

// Black or white, whichever reads better on `colour` (WCAG's contrast).
function inkOn(colour) {
  const channel = (at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const light =
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  return light > 0.179 ? "#000000" : "#ffffff";
}

const nameColours = facts.names.map(colourOfName);
const nameInks = nameColours.map(inkOn);

// A colour's sample for legends.
function swatch(colour) {
  return make("span", {class: "swatch", style: `background:${colour}`});
}

function labelOfProcess(process) {
  if (process.is_rank) return `Rank ${process.pid}`;
  return process.name || `Process ${process.pid}`;
}
