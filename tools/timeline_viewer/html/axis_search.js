// Searches events by their name or the name of their tensor.

class Search {
  constructor() {
    this.clear();
  }

  clear() {
    this.text = "";
    this.hits = null;  // by row: sorted indices of slices
    this.count = 0;
    this.current = null;  // {row, index}
  }

  get active() {
    return this.hits !== null;
  }

  find(text) {
    this.clear();
    this.text = text;
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return;
    const matches = facts.names.map((name) => name.toLowerCase().includes(wanted));
    const anyName = matches.includes(true);
    this.hits = rows.map((row) => {
      if (!anyName) return new Uint32Array(0);
      const {name} = row.slices;
      const hits = [];
      for (let i = 0; i < row.count; ++i) {
        if (matches[name[i]] || matches[row.saidOf("text", i)]) hits.push(i);
      }
      return Uint32Array.from(hits);
    });
    for (const hits of this.hits) this.count += hits.length;
  }

  // Whether a slice of `row` in [first, end) is a hit.
  hasHit(row, first, end) {
    const hits = this.hits[row.index];
    const at = lowerBound(hits, first);
    return at < hits.length && hits[at] < end;
  }

  // Moves to the hit after the current one (before it if `direction` is -1), by
  // time and then by row. Without a current hit, to the first from `time` on.
  step(direction, time) {
    if (!this.active || this.count === 0) return null;
    const from = this.current === null ? null : this.key(this.current);
    let best = null;
    for (const row of rows) {
      const hits = this.hits[row.index];
      const index = from === null ? this.firstFrom(row, hits, time) :
        this.nextOf(row, hits, from, direction);
      if (index === -1) continue;
      const hit = {row, index};
      if (best === null || direction *
        compareKeys(this.key(hit), this.key(best)) < 0) best = hit;
    }
    if (best === null) {
      // Continue at the other end.
      this.current = null;
      return this.step(direction, direction > 0 ? -Infinity : Infinity);
    }
    this.current = best;
    return best;
  }

  key({row, index}) {
    return [row.slices.start[index], row.index, index];
  }

  firstFrom(row, hits, time) {
    if (hits.length === 0) return -1;
    if (time === Infinity) return hits[hits.length - 1];
    const at = lowerBound(hits, row.firstFrom(time));
    return at < hits.length ? hits[at] : -1;
  }

  nextOf(row, hits, from, direction) {
    let at = this.countBefore(row, hits, from);
    if (direction < 0) return at > 0 ? hits[at - 1] : -1;
    if (at < hits.length &&
      compareKeys(this.key({row, index: hits[at]}), from) === 0) ++at;
    return at < hits.length ? hits[at] : -1;
  }

  // The number of hits of `row` before `key`.
  countBefore(row, hits, key) {
    let low = 0;
    let high = hits.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareKeys(this.key({row, index: hits[middle]}), key) < 0) {
        low = middle + 1;
      } else high = middle;
    }
    return low;
  }

  // The place of the current hit among all, from 1; 0 if there is none.
  place() {
    if (this.current === null) return 0;
    const key = this.key(this.current);
    let before = 0;
    for (const row of rows) {
      before += this.countBefore(row, this.hits[row.index], key);
    }
    return before + 1;
  }
}

function compareKeys(a, b) {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
