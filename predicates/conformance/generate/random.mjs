// A small deterministic source of chance (splitmix32): one seed, one sequence.

export class Random {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  next() {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }

  /** An integer from 0 up to, not including, n. */
  below(n) {
    return this.next() % n;
  }

  /** True once in n. */
  oneIn(n) {
    return this.below(n) === 0;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  shuffle(list) {
    const out = [...list];
    for (let i = out.length - 1; i > 0; i -= 1) {
      const j = this.below(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  }
}
