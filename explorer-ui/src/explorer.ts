import { type Link, nowhere, read, written } from "./address.ts";
import type { Answer, Door, Layer } from "./door.ts";
import { type Excerpt, around, carried, contains, fitted, same } from "./excerpt.ts";
import { Page } from "./page.ts";
import { Problem } from "./problem.ts";
import { type Sheet, preview, sheet, takesLong } from "./sheet.ts";
import type { Theme } from "./theme.ts";
import * as change from "./state.ts";
import type { State } from "./state.ts";

// ms without an answer, after which the page says that it is still waiting
const SLOW = { translation: 4000, weights: 500 };

/** Where the link to what is shown stands: the address bar, where an explorer has a page of its own. */
export interface Address {
  read(): string;
  write(hash: string): void;
  /** Call this whenever the reader changes the address; what comes back ends that. */
  whenChanged(follow: () => void): () => void;
}

/** Takes what the reader does to the door, and what comes back to the page. */
export class Explorer {
  private state: State = change.empty;
  private current = new AbortController();
  private laying = new AbortController();
  private opening: number | null = null;
  private coming: { layer: number; head: number | null } | null = null;
  private readonly page: Page;

  constructor(
    private readonly door: Door,
    root: ShadowRoot,
    theme: Theme,
    private readonly address: Address | null,
  ) {
    this.page = new Page(root, theme, {
      translate: (text) => void this.translate(text),
      text: (row) => void this.open(row),
      point: (place) => this.turn(change.pointedAt(this.state, place)),
      pin: (place) => this.turn(change.pinnedAt(this.state, place)),
      unpin: () => this.turn(change.unpinned(this.state)),
      layer: (index) => this.choose(index, this.wanted.head),
      head: (head) => this.choose(this.wanted.layer, head),
      see: (layer, head) => this.choose(layer, head),
      view: (excerpt) => void this.lay(this.state.layer, this.state.head, excerpt),
      order: (order) => this.turn({ ...this.state, order }),
      scale: (scale) => this.turn({ ...this.state, scale }),
      mark: (statistic, sorted) => this.turn({ ...this.state, statistic, sorted }),
    });
  }

  /** Meet the model, and show what the address says, or else the model's example. */
  async begin(hash: string): Promise<void> {
    try {
      const model = await this.door.model();
      this.turn({ ...this.state, model });
      const { link, problem } = readLink(hash);
      const first = link.text ?? model.facts.example ?? "";
      if (model.texts !== null) await this.open(link.row ?? 0, link);
      else if (first !== "" && this.page.sentence.value === "") await this.translate(first, link);
      if (problem !== null) this.turn(change.failed(this.state, problem));
    } catch (thrown) {
      this.turn(change.failed(this.state, Problem.of(thrown)));
    }
  }

  /** Show what a link says: after Back, or where the reader has changed the address. */
  async follow(hash: string): Promise<void> {
    if (hash === written(change.link(this.state))) return;
    const { link, problem } = readLink(hash);
    if (problem !== null) return this.turn(change.failed(this.state, problem), false);
    const { answer, asked, row, model } = this.state;
    if (model?.texts !== null && model !== null) {
      if (link.row !== null && link.row !== row) return this.open(link.row, link);
    } else if (link.text !== null && link.text !== asked) {
      return this.translate(link.text, link);
    }
    this.turn(change.restored(this.state, link), false);
    if (answer === null) return;
    const first = this.state.overview?.statistics.first ?? { layer: 0, head: 0 };
    const index = Math.min(link.layer ?? first.layer, answer.layers.length - 1);
    const layer = answer.layers[index];
    if (layer === undefined) return;
    const head = link.head === "mean" ? null : (link.head ?? first.head);
    await this.lay(index, head, fitted(link.view, layer), false);
    this.turn(change.repinned(this.state, link.pinned), false);
  }

  /** Translate a text; a newer one takes the place of an older one that is still under way. */
  async translate(text: string, link: Link | null = null): Promise<void> {
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
      const came = await this.first(answer, link, signal);
      return (state) => kept(change.answered(came.from(state), text, answer, came), link);
    });
  }

  /** Open a text of a trace. */
  private async open(row: number, link: Link | null = null): Promise<void> {
    const signal = this.anew();
    this.opening = row;
    this.turn(change.reading(this.state));
    await this.wait(signal, SLOW.weights, async () => {
      const answer = await this.door.text(row, signal);
      const came = await this.first(answer, link, signal);
      return (state) => kept(change.answered(came.from(state), null, answer, { ...came, row }), link);
    });
    if (signal.aborted) return;
    this.opening = null;
    const { sheet, layer, head, view } = this.state;
    if (sheet?.preview && view !== null) await this.lay(layer, head, view); // read all of it now
  }

  /** The reader chose a head: of the weights that are there, or of others. */
  private choose(layer: number, head: number | null): void {
    this.state = { ...this.state, chosen: true };
    if (layer === this.state.layer && change.holds(this.state, head)) {
      this.turn({ ...this.state, head });
    } else void this.lay(layer, head);
  }

  /** The head that is shown, or the one that is on its way. */
  private get wanted(): { layer: number; head: number | null } {
    return this.coming ?? this.state;
  }

  /** Other weights of the same answer. */
  private async lay(
    index: number,
    head: number | null,
    excerpt?: Excerpt,
    remembered = true,
  ): Promise<void> {
    if (this.opening !== null) {
      this.state = { ...this.state, layer: index, head };
      return this.open(this.opening); // of the text that is on its way
    }
    const { answer } = this.state;
    const layer = answer?.layers[index];
    if (answer === null || layer === undefined) return;
    const view = excerpt ?? carried(this.state.view, change.layer(this.state), layer);
    this.laying.abort();
    if (this.shows(index, head, view)) {
      return this.turn(change.viewed(this.state, head, view), remembered);
    }
    this.coming = { layer: index, head };
    const { signal } = (this.laying = new AbortController());
    const early = this.preview(layer, index, head, view);
    if (early !== null) this.turn(change.laid(this.state, head, early, view), remembered);
    this.turn(change.reading(this.state), remembered);
    await this.wait(
      signal,
      SLOW.weights,
      async () => {
        const came = await this.sheet(answer, index, head, around(view, layer), signal);
        return (state) => (came === null ? state : change.laid(state, head, came, view));
      },
      remembered,
    );
    if (!signal.aborted) this.coming = null;
  }

  /** What is shown of a head before its weights have come, where they take long. */
  private preview(layer: Layer, index: number, head: number | null, view: Excerpt): Sheet | null {
    const { overview, sheet } = this.state;
    const there = sheet?.layer === index && change.holds(this.state, head);
    return there ? null : early(overview, layer, index, head, view);
  }

  /** Whether the weights that are there show this part of this head, as exactly as they can be. */
  private shows(index: number, head: number | null, view: Excerpt): boolean {
    const { sheet } = this.state;
    if (sheet === null || sheet.layer !== index || !change.holds(this.state, head)) return false;
    if (sheet.preview) return false;
    return contains(sheet.excerpt, view) && (!sheet.coarse || same(sheet.excerpt, view));
  }

  /**
   * What is in view of a new answer: what the link says; or the head and the part that the reader
   * chose; or the head that is most worth seeing.
   */
  private async first(answer: Answer, link: Link | null, signal: AbortSignal): Promise<Came> {
    const from = (state: State) => state;
    if (answer.map === null) return { sheet: null, view: null, overview: null, from };
    const [tiles, statistics] = await Promise.all([
      this.door.overview(answer.map, signal),
      this.door.statistics(answer.map, signal),
    ]);
    const overview = { tiles, statistics };
    const last = answer.layers.length - 1;
    const chosen = this.state.chosen && this.state.layer <= last;
    const most = chosen ? this.state : statistics.first;
    const layer = Math.min(link?.layer ?? most.layer, last);
    const head = link?.head === "mean" ? null : (link?.head ?? most.head);
    const described = answer.layers[layer];
    if (described === undefined) return { sheet: null, view: null, overview, from };
    const view = link
      ? fitted(link.view, described)
      : carried(this.state.view, change.layer(this.state), described);
    const came =
      early(overview, described, layer, head, view) ??
      (await this.sheet(answer, layer, head, around(view, described), signal));
    return { sheet: came, view, overview, from: (state) => ({ ...state, layer, head }) };
  }

  private async sheet(
    answer: Answer,
    index: number,
    head: number | null,
    excerpt: Excerpt,
    signal: AbortSignal,
  ): Promise<Sheet | null> {
    const layer = answer.layers[index];
    if (answer.map === null || layer === undefined) return null;
    return sheet(this.door, answer.map, { layer, index, head }, excerpt, signal);
  }

  /** Wait for what changes the state, and say so when it takes longer than `slow` ms. */
  private async wait(
    signal: AbortSignal,
    slow: number,
    work: () => Promise<(state: State) => State>,
    remembered = true,
  ): Promise<void> {
    const late = setTimeout(() => {
      if (!signal.aborted) this.turn({ ...this.state, slow: true });
    }, slow);
    try {
      const changed = await work();
      if (!signal.aborted) this.turn(changed(this.state), remembered);
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
    [this.opening, this.coming] = [null, null];
    this.current = new AbortController();
    return this.current.signal;
  }

  /** Let go of everything that is under way. */
  stop(): void {
    this.current.abort();
    this.laying.abort();
  }

  private turn(state: State, remembered = true): void {
    if (state === this.state) return;
    this.state = state;
    this.page.show(state);
    if (remembered && state.asking === null && !state.reading) this.address?.write(written(change.link(state)));
  }
}

function early(
  overview: change.Overview | null,
  layer: Layer,
  index: number,
  head: number | null,
  view: Excerpt,
): Sheet | null {
  const tile = overview?.tiles[index];
  if (tile === undefined || !takesLong(layer, view)) return null;
  return preview(tile, layer, index, Math.min(head ?? 0, layer.heads - 1));
}

/** What the address says; nothing, and what is wrong with it, where it is damaged. */
function readLink(hash: string): { link: Link; problem: Problem | null } {
  try {
    return { link: read(hash), problem: null };
  } catch (thrown) {
    return { link: nowhere, problem: Problem.of(thrown) };
  }
}

/** What of a new answer is shown first, in a state with its layer and head. */
interface Came extends change.First {
  from(state: State): State;
}

function kept(state: State, link: Link | null): State {
  return link === null ? state : change.repinned(change.restored(state, link), link.pinned);
}
