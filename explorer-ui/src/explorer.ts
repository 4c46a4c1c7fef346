import * as address from "./address.ts";
import type { Answer, Door } from "./door.ts";
import { type Excerpt, carried } from "./excerpt.ts";
import { Page } from "./page.ts";
import { Problem } from "./problem.ts";
import { type Sheet, sheet } from "./sheet.ts";
import * as change from "./state.ts";
import type { State } from "./state.ts";

// ms without an answer, after which the page says that it is still waiting
const SLOW = { translation: 4000, weights: 500 };

/** The one who acts: takes the reader's wishes to the door, and what comes back to the page. */
export class Explorer {
  private state: State = change.empty;
  private current = new AbortController();
  private laying = new AbortController();
  private opening: number | null = null;
  private readonly page: Page;

  constructor(private readonly door: Door) {
    this.page = new Page({
      translate: (text) => void this.translate(text),
      text: (row) => void this.open(row),
      point: (place) => this.turn(change.pointedAt(this.state, place)),
      pin: (place) => this.turn(change.pinnedAt(this.state, place)),
      unpin: () => this.turn(change.unpinned(this.state)),
      layer: (index) => void this.lay(index, this.state.head),
      head: (head) => {
        if (change.holds(this.state, head)) this.turn({ ...this.state, head });
        else void this.lay(this.state.layer, head);
      },
      view: (excerpt) => void this.lay(this.state.layer, this.state.head, excerpt),
      order: (order) => this.turn({ ...this.state, order }),
    });
  }

  /** Meet the model, and translate the sentence of the address or else the model's example. */
  async begin(text: string | null): Promise<void> {
    try {
      const model = await this.door.model();
      this.turn({ ...this.state, model });
      if (model.texts !== null) return await this.open(0);
      const first = text ?? model.facts.example ?? "";
      if (first === "" || this.page.sentence.value !== "") return; // the reader was faster
      await this.translate(first);
    } catch (thrown) {
      this.turn(change.failed(this.state, Problem.of(thrown)));
    }
  }

  /** Translate a text; a newer one takes the place of an older one that is still under way. */
  async translate(text: string): Promise<void> {
    if (this.state.model?.texts) return; // an address with a sentence, at a page of a trace
    if (text !== this.page.sentence.value) {
      this.page.sentence.value = text;
      this.page.grow();
    }
    if (text === this.state.asking) return;
    const signal = this.anew();
    if (text.trim() === "") {
      const nothing = new Problem("a sentence to translate", "an empty one", "type a few words");
      return this.turn(change.failed(this.state, nothing));
    }
    this.turn(change.asking(this.state, text));
    await this.wait(signal, SLOW.translation, async () => {
      const answer = await this.door.translate(text, signal);
      const came = await this.first(answer, signal);
      if (!signal.aborted) remember(text);
      return (state) => change.answered(state, text, answer, came);
    });
  }

  /** Open a text of a trace. */
  private async open(row: number): Promise<void> {
    const signal = this.anew();
    this.opening = row;
    this.turn(change.reading(this.state));
    await this.wait(signal, SLOW.weights, async () => {
      const answer = await this.door.text(row, signal);
      const came = await this.first(answer, signal);
      return (state) => change.answered(state, null, answer, came);
    });
    if (!signal.aborted) this.opening = null;
  }

  /** Other weights of the same answer. */
  private async lay(index: number, head: number | null, excerpt?: Excerpt): Promise<void> {
    if (this.opening !== null) {
      this.state = { ...this.state, layer: index, head };
      return this.open(this.opening); // of the text that is on its way
    }
    const { answer } = this.state;
    if (answer === null) return;
    this.laying.abort();
    const { signal } = (this.laying = new AbortController());
    this.turn(change.reading(this.state));
    await this.wait(signal, SLOW.weights, async () => {
      const came = await this.sheet(answer, index, head, excerpt, signal);
      return (state) => (came === null ? state : change.laid(state, head, came));
    });
  }

  /** What is in view of a new answer: the layer and the part that were in view of the last. */
  private first(answer: Answer, signal: AbortSignal): Promise<Sheet | null> {
    const index = Math.min(this.state.layer, answer.layers.length - 1);
    return this.sheet(answer, Math.max(index, 0), this.state.head, undefined, signal);
  }

  private async sheet(
    answer: Answer,
    index: number,
    head: number | null,
    excerpt: Excerpt | undefined,
    signal: AbortSignal,
  ): Promise<Sheet | null> {
    const layer = answer.layers[index];
    if (answer.map === null || layer === undefined) return null;
    const part = excerpt ?? carried(this.state.sheet?.excerpt ?? null, change.layer(this.state), layer);
    return sheet(this.door, answer.map, { layer, index, head }, part, signal);
  }

  /** Wait for what changes the state, and say so when it takes longer than `slow` ms. */
  private async wait(
    signal: AbortSignal,
    slow: number,
    work: () => Promise<(state: State) => State>,
  ): Promise<void> {
    const late = setTimeout(() => {
      if (!signal.aborted) this.turn({ ...this.state, slow: true });
    }, slow);
    try {
      const changed = await work();
      if (!signal.aborted) this.turn(changed(this.state));
    } catch (thrown) {
      if (!signal.aborted) this.turn(change.failed(this.state, Problem.of(thrown)));
    } finally {
      clearTimeout(late);
    }
  }

  /** Let go of what is under way. */
  private anew(): AbortSignal {
    this.current.abort();
    this.laying.abort();
    this.opening = null;
    this.current = new AbortController();
    return this.current.signal;
  }

  private turn(state: State): void {
    if (state === this.state) return;
    this.state = state;
    this.page.show(state);
  }
}

/** Put the sentence into the address; Back goes to the one before, not to a page without any. */
function remember(text: string): void {
  const before = address.read(location.hash);
  if (before === text) return;
  if (before === null) history.replaceState(null, "", address.written(text));
  else history.pushState(null, "", address.written(text));
}
