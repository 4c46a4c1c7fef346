import * as address from "./address.ts";
import type { Door } from "./door.ts";
import { Page } from "./page.ts";
import { Problem } from "./problem.ts";
import * as change from "./state.ts";
import type { State } from "./state.ts";

const SLOW = 4000; // ms without an answer, after which the page says that it is still waiting

/** The one who acts: takes the reader's wishes to the door, and what comes back to the page. */
export class Explorer {
  private state: State = change.empty;
  private current = new AbortController();
  private layering = new AbortController();
  private readonly page: Page;

  constructor(private readonly door: Door) {
    this.page = new Page({
      translate: (text) => void this.translate(text),
      point: (place) => this.turn(change.pointedAt(this.state, place)),
      pin: (place) => this.turn(change.pinnedAt(this.state, place)),
      unpin: () => this.turn(change.unpinned(this.state)),
      layer: (index) => void this.relayer(index),
      head: (head) => this.turn({ ...this.state, head }),
      order: (order) => this.turn({ ...this.state, order }),
    });
  }

  /** Meet the model, and translate the sentence of the address or else the model's example. */
  async begin(text: string | null): Promise<void> {
    try {
      const model = await this.door.model();
      this.turn({ ...this.state, model });
      const first = text ?? model.facts.example ?? "";
      if (first === "" || this.page.sentence.value !== "") return; // the reader was faster
      await this.translate(first);
    } catch (thrown) {
      this.turn(change.failed(this.state, Problem.of(thrown)));
    }
  }

  /** Translate a text; a newer one takes the place of an older one that is still under way. */
  async translate(text: string): Promise<void> {
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
    const slow = setTimeout(() => this.turn({ ...this.state, slow: true }), SLOW);
    try {
      const answer = await this.door.translate(text, signal);
      const layer = Math.min(this.state.layer, answer.layers.length - 1);
      const tile = answer.map === null ? null : await this.door.tile(answer.map, layer, signal);
      if (signal.aborted) return;
      this.turn(change.answered(this.state, text, answer, tile));
      remember(text);
    } catch (thrown) {
      if (!signal.aborted) this.turn(change.failed(this.state, Problem.of(thrown)));
    } finally {
      clearTimeout(slow);
    }
  }

  private async relayer(index: number): Promise<void> {
    const answer = this.state.answer;
    if (answer === null || answer.map === null) return;
    this.layering.abort();
    const { signal } = (this.layering = new AbortController());
    const late = () => signal.aborted || this.state.answer !== answer;
    try {
      const tile = await this.door.tile(answer.map, index, signal);
      if (!late()) this.turn(change.relayered(this.state, index, tile));
    } catch (thrown) {
      if (!late()) this.turn(change.failed(this.state, Problem.of(thrown)));
    }
  }

  /** Let go of what is under way. */
  private anew(): AbortSignal {
    this.current.abort();
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
