// Texts, colours and elements.

// Makes an element. `content` may be elements and texts; texts never become
// markup.
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

// A time such as "12.34 ms", with four significant digits.
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

// A time on the axis, with enough digits to distinguish `step` ns.
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

// Colours that colour-blind people can distinguish (Okabe and Ito).
const PALETTE = {
  blue: "#0072b2", sky: "#56b4e9", green: "#009e73", orange: "#e69f00",
  vermillion: "#d55e00", purple: "#cc79a7", grey: "#8c8c8c",
};

// Colours and meanings of the parts of a step, in timeline::StepPart's order.
const PARTS = [
  {colour: PALETTE.blue, means: "everything that is in no other part"},
  {colour: PALETTE.orange, means: "loading a mini-batch"},
  {colour: PALETTE.grey, means: "other work than training"},
  {colour: PALETTE.vermillion,
    means: "exposed: some rank has not submitted its gradient"},
  {colour: PALETTE.purple,
    means: "exposed: the bucket has not started"},
  {colour: PALETTE.sky, means: "exposed: gradients are being reduced"},
  {colour: PALETTE.green,
    means: "exposed: copies to and from the fusion buffer"},
];

// The kinds of events on the axis. An event has the first kind that fits.
const KINDS = [
  {label: "waiting", colour: PALETTE.vermillion,
    fits: /^(WAIT_FOR_RANKS|WAIT_FOR_GRADIENTS|WAIT)$/},
  {label: "negotiation", colour: PALETTE.purple, fits: /^NEGOTIATE_/},
  {label: "copies", colour: PALETTE.green, fits: /^MEMCPY_/},
  {label: "whole bucket", colour: "#5d7b93", fits: /_BUCKET$/,
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

// Colours of all other events, by their names (Tol's muted palette).
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

// Black or white: the colour with more contrast on `colour` (WCAG).
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

// A sample of a colour, for legends.
function swatch(colour) {
  return make("span", {class: "swatch", style: `background:${colour}`});
}

function labelOfProcess(process) {
  if (process.is_rank) return `Rank ${process.pid}`;
  return process.name || `Process ${process.pid}`;
}
