import { options } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";

/** A value that can be followed: what reads `value` hears when it changes; `peek` only looks. */
export interface ReadonlySignal<T> {
  readonly value: T;
  peek(): T;
}

export interface Signal<T> extends ReadonlySignal<T> {
  value: T;
}

let reading: Reader | null = null; // who hears of the signals that are read now
const waiting = new Set<Reader>(); // that have something to hear
let telling = false;

abstract class Source<T> {
  readonly readers = new Set<Reader>();

  abstract peek(): T;

  get value(): T {
    const value = this.peek();
    if (reading !== null) {
      reading.seen.set(this, value);
      this.readers.add(reading);
    }
    return value;
  }
}

/** Who follows signals, and what it saw of each of them. */
class Reader {
  readonly seen = new Map<Source<unknown>, unknown>();

  /** `act`: what is done when something that was seen is different. */
  constructor(private readonly act: () => void) {}

  /** Something that was seen may be different now. */
  hear(): void {
    waiting.add(this);
  }

  /** Follow what is read meanwhile, and nothing else any more. */
  follow<T>(work: () => T): T {
    const before = reading;
    this.end();
    reading = this;
    try {
      return work();
    } finally {
      reading = before;
    }
  }

  get late(): boolean {
    for (const [source, value] of this.seen) if (source.peek() !== value) return true;
    return false;
  }

  catchUp(): void {
    if (this.late) this.act();
  }

  end(): void {
    for (const source of this.seen.keys()) source.readers.delete(this);
    this.seen.clear();
  }
}

/** Each reader hears once, and acts only if what it saw is different when its turn comes. */
function tell(source: Source<unknown>): void {
  for (const reader of [...source.readers]) reader.hear();
  if (telling) return;
  telling = true;
  for (const reader of waiting) {
    waiting.delete(reader);
    try {
      reader.catchUp();
    } catch (thrown) {
      reportError(thrown);
    }
  }
  telling = false;
}

class Held<T> extends Source<T> {
  constructor(private held: T) {
    super();
  }

  override get value(): T {
    return super.value;
  }

  override set value(next: T) {
    if (next === this.held) return;
    this.held = next;
    tell(this);
  }

  peek(): T {
    return this.held;
  }
}

class Computed<T> extends Source<T> {
  private held: T | undefined;
  private known = false;
  private fresh = false;
  private readonly own = new Reader(() => undefined);

  constructor(private readonly compute: () => T) {
    super();
    this.own.hear = () => {
      if (!this.fresh) return;
      this.fresh = false;
      for (const reader of [...this.readers]) reader.hear();
    };
  }

  peek(): T {
    if (!this.fresh) {
      this.fresh = true;
      if (!this.known || this.own.late) this.held = this.own.follow(this.compute);
      this.known = true;
    }
    return this.held as T;
  }
}

export function signal<T>(value: T): Signal<T> {
  return new Held(value);
}

/** What follows from other signals; it is computed when it is read, if one of those has changed. */
export function computed<T>(compute: () => T): ReadonlySignal<T> {
  return new Computed(compute);
}

/** Do this now, and whenever a signal that it read changes; what comes back ends that. */
export function effect(run: () => void): () => void {
  const reader: Reader = new Reader(() => reader.follow(run));
  reader.follow(run);
  return () => reader.end();
}

export function useSignal<T>(value: T): Signal<T> {
  return useState(() => signal(value))[0];
}

export function useSignalEffect(run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => effect(() => latest.current()), []);
}

/** Draw a component again whenever a signal changes that it read while it was drawn. */
export function useTracking(): void {
  const again = useReducer((count: number, _: void) => count + 1, 0)[1];
  const reader = useState(() => new Reader(() => again()))[0];
  useEffect(() => () => reader.end(), []);
  reader.end();
  reading = reader;
}

// What a component reads ends with it: Preact says when it goes on with what the component gave.
const { diffed } = options;
options.diffed = (vnode) => {
  reading = null;
  diffed?.(vnode);
};
