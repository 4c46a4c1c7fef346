import { type ReadonlySignal, type Signal, computed, effect, signal } from "@preact/signals-core";
import { type Link, nowhere, read, written } from "./address.ts";
import type { Answer, Door, GoldLink, Layer, Part } from "./door.ts";
import type { Head } from "./grid-layout.ts";
import { type Label, direction, labels } from "./label.ts";
import { joined, joinedLabels, pieceSpans, wordSpans } from "./joining.ts";
import { type Matrix, head as headOf } from "./matrix.ts";
import { type Excerpt, type Span, around, carried, contains, fitted, same } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { Sheets } from "./ahead.ts";
import { wordsOf } from "./beams.ts";
import { Beside } from "./beside.ts";
import { type Sheet, glanced, headAlone, holdsAll, preview, takesAMoment, takesLong } from "./sheet.ts";
import type { MapView } from "./map-view.ts";
import type { Theme } from "./theme.ts";
import * as change from "./state.ts";
import type { Place, State } from "./state.ts";
import type { Kind } from "./wording.ts";

const FOLLOWING = 80; // ms between places of a pointer that goes on
// ms without an answer, after which the page says that it is still waiting
const SLOW = { translation: 4000, weights: 500 };

/** Where the link to what is shown stands: the address bar, where an explorer has a page of its own. */
export interface Address {
  read(): string;
  write(hash: string): void;
  /** Call this whenever the reader changes the address; what comes back ends that. */
  whenChanged(follow: () => void): () => void;
}

/** What words are read from: the weights in view, of pieces or of the words that they join to. */
export interface Reading {
  readonly matrix: Matrix;
  readonly rows: readonly Label[];
  readonly keys: readonly Label[];
  /** The places of each row and of each key in the sheet. */
  readonly rowSpans: readonly Span[];
  readonly keySpans: readonly Span[];
}

type Requested = Pick<State, "layer" | "head" | "view">;

type Now = { readonly [Name in keyof State]: ReadonlySignal<State[Name]> };

/** Takes what the reader does to the door, and what comes back into the state, which panels show. */
export class Explorer {
  private readonly current: Signal<State> = signal(change.empty);
  /** Each part of the state as a signal of its own, which changes when it does. */
  readonly now: Now = Object.fromEntries(
    Object.keys(change.empty).map((name) => [
      name,
      computed(() => this.current.value[name as keyof State]),
    ]),
  ) as unknown as Now;

  /** The text in the field. */
  readonly draft = signal("");
  /** A short word about what was just done. */
  readonly notice = signal("");
  /** The map on screen, for what is exported. */
  map: MapView | null = null;
  /** What is kept or pointed at, for what says much of it: it follows the pointer some times a second. */
  readonly place = signal<Place | null>(null);
  private following: ReturnType<typeof setTimeout> | undefined;
  private followed: { readonly at: number; readonly sheet: Sheet | null } = { at: -Infinity, sheet: null };
  /** The links of annotators that are drawn over the map. */
  readonly gold = signal<readonly GoldLink[]>([]);
  /** What is said to those who do not see the page. */
  readonly spoken = signal("");
  /** The weights in view, and what words are read from. */
  readonly weights = computed(() => change.weightsOf(this.now.sheet.value, this.now.head.value));
  readonly layer = computed(() => this.now.answer.value?.layers[this.now.layer.value] ?? null);
  readonly reading = computed(() => this.read(this.weights.value));
  /** The words of the translation, as rows of the map; none where its rows are others. */
  readonly written = computed(() => wordsOf(this.now.answer.value, this.now.layer.value));
  /** The row after the last one that is there, while the map grows word by word. */
  readonly until = computed(() => {
    const { tab, grown } = this.now;
    return (tab.value === "beams" && this.written.value[(grown.value ?? 0) - 1]?.to) || Infinity;
  });
  readonly heads = computed((): readonly Head[] => {
    const [layer, head, selected, sheet] = [this.now.layer, this.now.head, this.now.selected, this.now.sheet];
    const parts = { layer: layer.value, head: head.value, selected: selected.value, sheet: sheet.value };
    return change.heads(parts);
  });
  /** Weights of heads that the sheet does not hold, by layer and head, of the same part. */
  private readonly others = signal<ReadonlyMap<string, Matrix>>(new Map());
  private othersOf: { readonly map: string | null; readonly excerpt: Excerpt | null } | null = null;
  private othersRequest = new AbortController();
  readonly beside: Beside;
  private answerRequest = new AbortController();
  private sheetRequest = new AbortController();
  private openingRow: number | null = null;
  private pending: Requested | null = null;
  private readonly sheets: Sheets;
  private readonly stopFetching: () => void;

  constructor(
    readonly door: Door,
    readonly theme: Theme,
    readonly address: Address | null,
  ) {
    this.sheets = new Sheets(door);
    this.beside = new Beside(door);
    const ends = [
      effect(() => this.fetchOthers(this.heads.value, this.now.sheet.value)),
      effect(() => this.followPlace(this.now.pinned.value, this.now.pointed.value, this.now.sheet.value)),
      effect(() => void this.beside.follow(this.now.beside.value, this.now.sheet.value, this.now.head.value, this.state)),
    ];
    this.stopFetching = () => ends.forEach((end) => end());
  }

  get state(): State {
    return this.current.peek();
  }

  /** Change what is looked at, without asking the door for anything. */
  set(part: Partial<State>): void {
    this.update({ ...this.state, ...part });
  }

  point(place: Place): void {
    this.current.value = change.pointedAt(this.state, place); // which no link keeps
  }

  /** Keep a place; `beside`: with those of its side that are kept. */
  pin(place: Place, beside = false): void {
    this.update((beside ? change.pinnedBeside : change.pinnedAt)(this.state, place));
  }

  unpin(): void {
    this.update(change.unpinned(this.state));
  }

  chooseLayer(layer: number): void {
    this.see(layer, this.requested.head);
  }

  chooseHead(head: number | null): void {
    this.see(this.requested.layer, head);
  }

  openText(row: number): void {
    void this.open(row);
  }

  /** Show a part of what is shown or on its way. `from`: the layer whose places these are. */
  view(excerpt: Excerpt, from = change.layer(this.state)): void {
    const { requested: { layer, head }, state } = this;
    const to = state.answer?.layers[layer];
    const there = from === change.layer(state) && this.shows(state.layer, state.head, excerpt);
    if (there) this.set({ view: excerpt }); // what is on its way comes to the same part
    if (to) void this.show(layer, head, carried(excerpt, from, to));
  }

  /** Select a head beside the one that is shown, or let it go. */
  toggle(head: Head): void {
    this.update(change.toggled(this.state, head));
  }

  /** The weights of a head in the part that is in view; null while they are not there. */
  matrixOf({ layer, head }: Head): Matrix | null {
    const sheet = this.now.sheet.value;
    if (!sheet) return null;
    if (layer === sheet.layer && (sheet.head === null || sheet.head === head)) {
      return change.weightsOf(sheet, head);
    }
    return this.others.value.get(`${layer} ${head}`) ?? null;
  }

  /** Whether a head has rows and keys as the one in view has. */
  alike({ layer }: Head): boolean {
    const [own, other] = [this.layer.value, this.now.answer.value?.layers[layer]];
    return own !== null && own.queries === other?.queries && own.keys === other.keys;
  }

  /** Weights as words are read from them: of pieces, or joined. */
  read(matrix: Matrix | null): Reading | null {
    const sheet = this.now.sheet.value;
    if (!matrix || !sheet) return null;
    const { rows, keys } = sheet;
    if (!this.now.joined.value || sheet.coarse) {
      const [rowSpans, keySpans] = [pieceSpans(rows.length), pieceSpans(keys.length)];
      return { matrix, rows, keys, rowSpans, keySpans };
    }
    const [rowSpans, keySpans] = [wordSpans(rows), wordSpans(keys)];
    return {
      matrix: joined(matrix, rowSpans, keySpans),
      rows: joinedLabels(rows, rowSpans),
      keys: joinedLabels(keys, keySpans),
      rowSpans,
      keySpans,
    };
  }

  /** What the axes are, for the words that say so. */
  get kind(): Kind {
    return { translated: this.now.sentence.value !== null, within: this.layer.value?.within ?? false };
  }

  /** Ask once more for what did not come. */
  retry(): void {
    const { model, answer, row, view, layer, head } = this.state;
    if (!model || !answer) void this.begin(this.address?.read() ?? "");
    else if (!model.texts && this.draft.peek() !== this.state.sentence) void this.translate(this.draft.peek());
    else if (row !== null && !this.state.sheet) void this.open(row);
    else if (view) void this.show(layer, head, view);
    this.set({ problem: null });
  }

  /** A link to what is shown. */
  get link(): string {
    return written(change.link(this.state));
  }

  /** Meet the model, and show what the address says, or else the model's example. */
  async begin(hash: string): Promise<void> {
    try {
      const model = await this.door.model();
      this.update({ ...this.state, model });
      const { link, problem } = readLink(hash);
      const first = link.text ?? model.facts.example ?? "";
      if (model.texts) await this.open(link.row ?? 0, link);
      else if (first !== "" && this.draft.peek() === "") await this.translate(first, link);
      if (problem) this.update(change.failed(this.state, problem));
    } catch (thrown) {
      this.update(change.failed(this.state, Problem.of(thrown)));
    }
  }

  /** Show what a link says: after Back, or where the reader has changed the address. */
  async follow(hash: string): Promise<void> {
    if (hash === written(change.link(this.state))) return;
    const { link, problem } = readLink(hash);
    if (problem) return this.update(change.failed(this.state, problem), false);
    const { answer, sentence, row, model, forced } = this.state;
    if (model?.texts !== null && model) {
      if (link.row !== null && link.row !== row) return this.open(link.row, link);
    } else if (link.text !== null && (link.text !== sentence || link.forced.join() !== forced.join())) {
      return this.translate(link.text, link);
    }
    this.update(change.restored(this.state, link), false);
    if (!answer) return;
    const first = this.state.overview?.statistics.first ?? { layer: 0, head: 0 };
    const index = Math.min(link.layer ?? first.layer, answer.layers.length - 1);
    const layer = answer.layers[index];
    if (!layer) return;
    const head = link.head === "mean" ? null : (link.head ?? first.head);
    await this.show(index, head, fitted(link.view, layer), false);
    this.update(change.repinned(this.state, link.pinned), false);
  }

  /** Translate a text; a newer one takes the place of an older one that is still under way. */
  async translate(text: string, link: Link | null = null): Promise<void> {
    if (this.state.model?.texts) return; // an address with a sentence, at a page of a trace
    this.draft.value = text;
    if (!link && text === this.state.translating) return;
    const signal = this.restart();
    if (text.trim() === "") {
      const nothing = new Problem("a text", "an empty one", "type a few words");
      return this.update(change.failed(this.state, nothing));
    }
    this.update(change.translating(this.state, text));
    await this.wait(signal, SLOW.translation, async () => {
      const answer = await this.door.translate(text, link?.forced ?? [], signal);
      const came = await this.first(answer, link, signal);
      return (state) => kept(change.answered(came.from(state), text, answer, came), link);
    });
    await this.sharpen(signal);
  }

  /** Translate the text again, to a translation that begins with these ids. */
  choose(forced: readonly number[]): void {
    const { sentence } = this.state;
    if (sentence !== null) void this.translate(sentence, { ...change.link(this.state), forced });
  }

  /** Open a text of a trace. */
  private async open(row: number, link: Link | null = null): Promise<void> {
    const signal = this.restart();
    this.openingRow = row;
    this.update(change.reading(this.state));
    await this.wait(signal, SLOW.weights, async () => {
      const answer = await this.door.text(row, signal);
      const came = await this.first(answer, link, signal);
      return (state) => kept(change.answered(came.from(state), null, answer, { ...came, row }), link);
    });
    if (!signal.aborted) this.openingRow = null;
    await this.sharpen(signal);
  }

  /** Ask for the weights of the head of which a small picture is shown. */
  private async sharpen(signal: AbortSignal): Promise<void> {
    const { sheet, layer, head, view } = this.state;
    if (!signal.aborted && sheet?.preview && view) await this.show(layer, head, view);
  }

  /** Show a head: of the weights that are there, or of others. */
  see(layer: number, head: number | null): void {
    const { pending } = this;
    const chosen = { ...this.state, chosen: true };
    const held = layer === chosen.layer && change.holds(chosen, head);
    if (held) this.update({ ...chosen, head });
    else this.current.value = chosen;
    // The latest choice counts: what was chosen before does not take its place when it comes.
    if (pending ? pending.layer !== layer || pending.head !== head : !held) void this.show(layer, head);
  }

  /** A head that may be chosen next, because the reader points at it. */
  expect(head: Head | null): void {
    const { answer } = this.state;
    const layer = answer?.layers[head?.layer ?? -1];
    if (!answer || this.openingRow !== null) return;
    const view = layer && carried(this.state.view, change.layer(this.state), layer);
    const there = !head || !layer || !view;
    // To read a long map is much work: it is read when it is chosen.
    if (there || takesLong(layer, view) || this.shows(head.layer, head.head, view)) this.sheets.expect(answer, null);
    else this.sheets.expect(answer, { ...head, excerpt: around(view, layer) });
  }

  /** The head and the part that are shown, or those that are on their way. */
  private get requested(): Requested {
    return this.pending ?? this.state;
  }

  /** Other weights of the same answer. */
  private async show(
    index: number,
    head: number | null,
    excerpt?: Excerpt,
    remembered = true,
  ): Promise<void> {
    if (this.openingRow !== null) {
      this.current.value = { ...this.state, layer: index, head };
      return this.open(this.openingRow); // of the text that is on its way
    }
    const { answer } = this.state;
    const layer = answer?.layers[index];
    if (!answer || !layer) return;
    const { requested } = this;
    const view = excerpt ?? carried(requested.view, answer.layers[requested.layer] ?? null, layer);
    this.sheetRequest.abort();
    this.pending = null;
    if (this.shows(index, head, view)) {
      return this.update(change.viewed(this.state, head, view), remembered);
    }
    const wanted = { layer: index, head, excerpt: around(view, layer) };
    const ready = this.sheets.ready(answer, wanted);
    if (ready) {
      return this.update(change.withSheet(this.state, head, ready, view), remembered);
    }
    this.pending = { layer: index, head, view };
    const { signal } = (this.sheetRequest = new AbortController());
    const small = takesLong(layer, view) ? early(this.state.overview, layer, index, head) : null;
    const held = this.state.sheet?.layer === index && change.holds(this.state, head);
    if (small && !held) this.update(change.withSheet(this.state, head, small, view), remembered);
    this.update(change.reading(this.state), remembered);
    if (answer.map !== null && takesLong(layer, view)) {
      const part = { excerpt: wanted.excerpt, head: headAlone(layer, head, wanted.excerpt) };
      void this.meanwhile(answer.map, index, head, view, part, signal);
    }
    await this.wait(
      signal,
      SLOW.weights,
      async () => {
        const came = await this.sheets.get(answer, wanted, signal);
        return (state) => (!came ? state : change.withSheet(state, head, came, view));
      },
      remembered,
    );
    if (!signal.aborted) this.pending = null;
  }

  /** Show what an earlier reading says of a part, and how far its own is. */
  private async meanwhile(
    map: string,
    index: number,
    head: number | null,
    view: Excerpt,
    part: Part,
    signal: AbortSignal,
  ): Promise<void> {
    const { door } = this;
    const stopped = () => signal.aborted || !this.state.reading;
    const none = () => null; // what is wrong is said of the weights themselves
    const tile = (await door.glance?.(map, index, part, signal).catch(none)) ?? null;
    if (tile && !stopped()) {
      const { reading, slow } = this.state;
      const early = glanced(tile, part.excerpt, index, part.head);
      this.current.value = { ...change.withSheet(this.state, head, early, view), reading, slow };
    }
    for (;;) {
      await new Promise((after) => setTimeout(after, 500));
      if (stopped()) return;
      const share = (await door.progress?.(map, index, part, signal).catch(none)) ?? null;
      if (!stopped()) this.current.value = { ...this.state, share };
    }
  }

  /** Stop the reading of weights; less exact ones stay in view. */
  halt(): void {
    this.sheetRequest.abort();
    this.pending = null;
    this.update({ ...this.state, reading: false, slow: false, share: null });
  }

  /** Whether the weights that are there show this part of this head, as exactly as they can be. */
  private shows(index: number, head: number | null, view: Excerpt): boolean {
    const { sheet } = this.state;
    if (!sheet || sheet.layer !== index || !change.holds(this.state, head)) return false;
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
    const [tiles, statistics, rightToLeft] = await Promise.all([
      this.door.overview(answer.map, signal),
      this.door.statistics(answer.map, signal),
      this.directions(answer, signal),
    ]);
    const overview = { tiles, statistics, rightToLeft };
    const last = answer.layers.length - 1;
    const chosen = this.state.chosen && this.state.layer <= last;
    const most = chosen ? this.state : statistics.first;
    const layer = Math.min(link?.layer ?? most.layer, last);
    const head = link?.head === "mean" ? null : (link?.head ?? most.head);
    const described = answer.layers[layer];
    if (!described) return { sheet: null, view: null, overview, from };
    const view = link
      ? fitted(link.view, described)
      : carried(this.state.view, change.layer(this.state), described);
    // All heads are seen first. What a link keeps in view has its place in the weights alone.
    const pinned = (link?.pinned ?? null) !== null && !takesLong(described, view);
    const all = head === null && holdsAll(described, around(view, described));
    const soon = pinned || all || !takesAMoment(described, around(view, described));
    const came =
      (soon ? null : early(overview, described, layer, head)) ??
      (await this.sheets.get(answer, { layer, head, excerpt: around(view, described) }, signal));
    return { sheet: came, view, overview, from: (state) => ({ ...state, layer, head }) };
  }

  /** The layers whose keys run to the left; those of one heading and one size have the same keys. */
  private async directions(answer: Answer, signal: AbortSignal): Promise<ReadonlySet<number>> {
    const { map, layers } = answer;
    const alike = new Map<string, number[]>();
    layers.forEach(({ sheet, queries, keys }, index) => {
      const name = `${queries} ${keys} ${sheet}`;
      alike.set(name, [...(alike.get(name) ?? []), index]);
    });
    const found = [...alike.values()].map(async (group) => {
      const [index = 0] = group;
      const own = layers[index];
      if (map === null || !own || own.queries === 0) return [];
      const keys = { from: 0, to: Math.min(own.keys, 64) };
      const tokens = await this.door.tokens(map, index, { rows: { from: 0, to: 1 }, keys }, signal);
      return direction(labels(tokens.keys, tokens.keys.length)) === "rtl" ? group : [];
    });
    return new Set((await Promise.all(found)).flat());
  }

  /** Wait for what changes the state, and say so when it takes longer than `slow` ms. */
  private async wait(
    signal: AbortSignal,
    slow: number,
    work: () => Promise<(state: State) => State>,
    remembered = true,
  ): Promise<void> {
    const late = setTimeout(() => {
      if (!signal.aborted) this.update({ ...this.state, slow: true });
    }, slow);
    try {
      const changed = await work();
      if (!signal.aborted) this.update(changed(this.state), remembered);
    } catch (thrown) {
      if (!signal.aborted) this.update(change.failed(this.state, Problem.of(thrown)));
    } finally {
      clearTimeout(late);
    }
  }

  /** Let go of what is under way. */
  private restart(): AbortSignal {
    this.answerRequest.abort();
    this.sheetRequest.abort();
    this.sheets.stop();
    [this.openingRow, this.pending] = [null, null];
    this.answerRequest = new AbortController();
    return this.answerRequest.signal;
  }

  /** Let go of what is under way; `retry` asks for it again. */
  pause(): void {
    this.answerRequest.abort();
    this.sheetRequest.abort();
    this.othersRequest.abort();
    this.beside.stop();
    this.sheets.stop();
  }

  /** Let go of everything, for good. */
  stop(): void {
    this.stopFetching();
    clearTimeout(this.following);
    this.pause();
  }

  private update(state: State, remembered = true): void {
    if (state === this.state) return;
    this.current.value = state;
    if (remembered && state.translating === null && !state.reading) {
      this.address?.write(written(change.link(state)));
    }
  }

  /** At once, but for a pointer that goes on: to write all that is said of each place is much work. */
  private followPlace(pinned: Place | null, pointed: Place | null, sheet: Sheet | null): void {
    const follow = () => {
      this.followed = { at: performance.now(), sheet };
      const place = pinned ?? pointed;
      if (!change.samePlace(this.place.peek(), place)) this.place.value = place;
    };
    clearTimeout(this.following);
    const rest = this.followed.at + FOLLOWING - performance.now();
    if (!pinned && sheet === this.followed.sheet && rest > 0) this.following = setTimeout(follow, rest);
    else follow();
  }

  /** Ask for the selected heads that the sheet does not hold. */
  private fetchOthers(heads: readonly Head[], sheet: Sheet | null): void {
    const { answer } = this.state;
    const asked = { map: answer?.map ?? null, excerpt: sheet?.excerpt ?? null };
    const { map: before, excerpt: part } = this.othersOf ?? { map: null, excerpt: null };
    const kept = part !== null && asked.excerpt !== null && before === asked.map && same(part, asked.excerpt);
    if (!kept) {
      this.othersRequest.abort();
      this.othersRequest = new AbortController();
      this.others.value = new Map();
    }
    this.othersOf = asked;
    if (!answer || answer.map === null || !sheet || sheet.preview) return;
    const { map, layers } = answer;
    const { signal: stop } = this.othersRequest;
    const own = layers[sheet.layer];
    for (const { layer, head } of heads) {
      const there = layer === sheet.layer && (sheet.head === null || sheet.head === head);
      const other = layers[layer];
      const alike = own?.queries === other?.queries && own?.keys === other?.keys;
      const name = `${layer} ${head}`;
      if (there || !alike || this.others.peek().has(name)) continue;
      this.door.tile(map, layer, { excerpt: sheet.excerpt, head }, stop).then(
        (tile) => {
          if (!stop.aborted) this.others.value = new Map(this.others.peek()).set(name, headOf(tile, 0));
        },
        (thrown: unknown) => {
          if (!stop.aborted) this.update(change.failed(this.state, Problem.of(thrown)));
        },
      );
    }
  }
}

function early(
  overview: change.Overview | null,
  layer: Layer,
  index: number,
  head: number | null,
): Sheet | null {
  const tile = overview?.tiles[index];
  if (!tile) return null;
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
  return !link ? state : change.repinned(change.restored(state, link), link.pinned);
}
