import { Bars } from "./bars.ts";
import { Choices, type Choosing } from "./choices.ts";
import { element } from "./element.ts";
import { type Excerpt, type Span, whole } from "./excerpt.ts";
import { Frame } from "./frame.ts";
import { HeadGrid } from "./head-grid.ts";
import { type Label, direction, isolated } from "./label.ts";
import { type Cell, MapView, type Piece, weightAt } from "./map-view.ts";
import { type Matrix, column, head as headOf, largest, mean, row } from "./matrix.ts";
import { type Ramp, colour, css } from "./ramp.ts";
import { percent } from "./share.ts";
import { type Shading, type Tick, shading, ticks } from "./scale.ts";
import type { Sheet } from "./sheet.ts";
import { type Order, type Place, type State, active, layer, matrix } from "./state.ts";
import { type Shades, TokenRow } from "./token-row.ts";
import type { Theme } from "./theme.ts";
import * as wording from "./wording.ts";

/** What the reader can want of the page. */
export interface Wishes extends Choosing {
  /** A head of any layer. */
  see(layer: number, head: number): void;
  translate(text: string): void;
  point(place: Place): void;
  pin(place: Place): void;
  unpin(): void;
  view(excerpt: Excerpt): void;
  order(order: Order): void;
}

/** Shows a state; holds nothing of its own but what it drew last. */
export class Page {
  readonly sentence: HTMLTextAreaElement;
  private readonly rows: { source: TokenRow; target: TokenRow };
  private readonly bars: Bars;
  private readonly map: MapView;
  private readonly grid: HeadGrid;
  private readonly choices: Choices;
  private readonly frame: Frame;
  private shown: State | null = null;
  private weights: Matrix | null = null;
  private shade: Shading = () => 0;
  private far: Piece | null = null;
  private piece: Piece | null = null;

  constructor(
    private readonly root: ShadowRoot,
    private readonly theme: Theme,
    private readonly wishes: Wishes,
  ) {
    this.sentence = this.element("sentence", HTMLTextAreaElement);
    this.bars = new Bars(this.element("bars", HTMLElement));
    this.rows = {
      source: new TokenRow(this.element("source", HTMLElement), "source", wishes),
      target: new TokenRow(this.element("target", HTMLElement), "target", wishes),
    };
    const canvas = this.element("map", HTMLCanvasElement);
    const place = ({ row: index, column: partner }: Cell): Place => {
      return { side: "target", index, partner };
    };
    this.choices = new Choices(root, wishes);
    this.grid = new HeadGrid(
      theme,
      this.element("grid", HTMLCanvasElement),
      this.element("grid-room", HTMLElement),
      this.element("grid-readout", HTMLElement),
      ({ layer, head }) => wishes.see(layer, head),
    );
    this.frame = new Frame(root, (excerpt) => wishes.view(excerpt));
    this.map = new MapView(theme, canvas, this.element("map-room", HTMLElement), {
      point: (cell) => wishes.point(place(cell)),
      click: (cell) => wishes.pin(place(cell)),
      view: (excerpt) => wishes.view(excerpt),
      leave: () => {
        const last = this.shown?.pointed;
        if (last) wishes.point({ side: last.side, index: last.index });
      },
    });
    this.listen();
    theme.whenChanged(() => {
      if (this.shown === null) return;
      this.survey(this.shown);
      this.look(this.shown);
    });
  }

  show(state: State): void {
    const before = this.shown;
    this.shown = state;
    if (state.model !== before?.model) this.introduce(state);
    this.report(state, before);
    if (state.answer !== before?.answer) this.tell(state);
    const laid = ["sheet", "head", "view"] as const;
    if (laid.some((name) => state[name] !== before?.[name])) this.lay(state);
    if (state.scale !== before?.scale) this.scaled(state);
    if (state.order !== before?.order) {
      for (const input of this.element("order", HTMLElement).querySelectorAll("input")) {
        input.checked = input.value === state.order;
      }
    }
    const chosen = ["sheet", "head", "scale", "statistic", "sorted", "overview"] as const;
    if (chosen.some((name) => state[name] !== before?.[name])) this.choices.show(state);
    this.survey(state);
    if (this.weights !== null) this.look(state);
  }

  private listen(): void {
    const form = this.element("ask", HTMLFormElement);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.wishes.translate(this.sentence.value);
    });
    this.sentence.addEventListener("input", () => this.grow());
    this.sentence.addEventListener("keydown", (event) => {
      // Enter that ends the composition of a character (Japanese, Chinese) is not ours.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    new ResizeObserver(() => this.grow()).observe(form);
    this.root.addEventListener("keydown", (event) => {
      if ((event as KeyboardEvent).key === "Escape") this.wishes.unpin();
    });
    this.element("order", HTMLElement).addEventListener("change", (event) => {
      this.wishes.order((event.target as HTMLInputElement).value as Order);
    });
  }

  /** As high as the text in it. */
  grow(): void {
    this.sentence.style.setProperty("height", "auto");
    this.sentence.style.setProperty("height", `${this.sentence.scrollHeight}px`);
  }

  private introduce(state: State): void {
    const { facts, texts } = state.model ?? { facts: {}, texts: null };
    this.element("ask", HTMLElement).hidden = texts !== null;
    this.choices.offerTexts(texts ?? []);
    const items = wording.phrases(facts).map((phrase) => {
      const item = document.createElement("span");
      item.textContent = phrase;
      return item;
    });
    this.element("facts", HTMLElement).replaceChildren(...items);
    this.element("facts", HTMLElement).title = wording.signature(facts);
    this.speak(["translation", "target"], facts.target_language);
    this.speak(["sentence", "source"], facts.source_language);
  }

  /** What is under way, and what went wrong. */
  private report(state: State, before: State | null): void {
    const { asking, reading, slow, problem, answer } = state;
    const waits = asking !== before?.asking || reading !== before.reading || slow !== before.slow;
    const news = waits || answer !== before.answer;
    if (!news && problem === before.problem) return; // else it would be read aloud once more
    const busy = asking !== null;
    const result = this.element("result", HTMLElement);
    result.hidden = answer?.text == null;
    result.classList.toggle("stale", busy && answer !== null);
    this.element("looking", HTMLElement).classList.toggle("stale", busy || (reading && !state.sheet?.preview));
    this.element("ask", HTMLElement).classList.toggle("busy", busy);
    const progress = this.element("progress", HTMLElement);
    progress.textContent = wording.progress(state);
    progress.hidden = progress.textContent === "";
    const complaint = this.element("problem", HTMLElement);
    complaint.hidden = problem === null;
    complaint.textContent = problem?.message ?? "";
    this.sentence.setAttribute("aria-invalid", String(problem !== null));
  }

  private tell(state: State): void {
    const answer = state.answer;
    if (answer === null) return;
    this.element("translation", HTMLElement).textContent =
      answer.text === "" ? "(The model wrote nothing.)" : answer.text;
    const remarks = [...answer.remarks, wording.absence(answer)].filter((said) => said !== "");
    const remark = this.element("remark", HTMLElement);
    remark.hidden = remarks.length === 0;
    remark.textContent = remarks.join(" ");
    this.element("looking", HTMLElement).hidden = state.sheet === null;
    this.choices.offerLayers(answer);
  }

  /** New weights: new rows of tokens, and a new map. */
  private lay(state: State): void {
    this.weights = matrix(state);
    const { sheet } = state;
    const shown = layer(state);
    if (this.weights === null || sheet === null || shown === null) return;
    const weights = this.weights;
    this.scaled(state);
    const view = state.view ?? sheet.excerpt;
    this.frame.show(shown, view);
    this.far = far(state);
    const kind = kindOf(state);
    const names = wording.sides(kind);
    this.element("source-title", HTMLElement).textContent = names.source;
    this.element("target-title", HTMLElement).textContent = names.target;
    for (const id of ["rows", "distribution", "hint"]) {
      this.element(id, HTMLElement).hidden = sheet.coarse;
    }
    const coarse = this.element("coarse", HTMLElement);
    coarse.textContent = wording.hint(sheet.coarse ? sheet.excerpt : null, sheet.preview ? sheet.tile : null);
    coarse.hidden = !sheet.coarse;
    this.fill(sheet, weights, view);
    this.element("map", HTMLElement).setAttribute(
      "aria-label",
      wording.spoken(weights.rows, weights.columns, kind, sheet.coarse),
    );
  }

  /** How dark weights are, and what the legend says of it. */
  private scaled(state: State): void {
    const shown = layer(state);
    if (this.weights === null || shown === null) return;
    this.shade = shading(state.scale, this.weights, shown.keys);
    this.far = far(state);
    this.legend(ticks(state.scale, largest(this.weights)));
  }

  /** The weights that came, one object as long as they stay the same. */
  private near(matrix: Matrix, { excerpt }: Sheet): Piece {
    const { shade, piece } = this;
    if (piece?.matrix === matrix && piece.excerpt === excerpt && piece.shade === shade) return piece;
    return (this.piece = { matrix, excerpt, shade });
  }

  /** All heads at once. */
  private survey(state: State): void {
    const { answer, overview, layer, head, scale, statistic, sorted } = state;
    const several = (answer?.layers ?? []).reduce((sum, { heads }) => sum + heads, 0) > 1;
    this.element("heads", HTMLElement).hidden = overview === null || !several;
    if (answer === null || overview === null || !several) return;
    this.grid.draw({
      layers: answer.layers,
      overview: overview.tiles,
      statistics: overview.statistics,
      shown: head === null ? null : { layer, head },
      ramp: this.theme.ramp,
      scale,
      statistic,
      sorted,
    });
  }

  /** The rows of words; a coarse map has none. */
  private fill({ coarse, rows, keys, excerpt }: Sheet, weights: Matrix, view: Excerpt): void {
    const [from, to] = [keys.map((label) => label.text), rows.map((label) => label.text)];
    const spoken = (place: Place, word: string, across: string[]) =>
      wording.summary(place, word, toward(weights, place), across);
    const words = (labels: readonly Label[], part: Span, own: Span) =>
      coarse ? [] : labels.slice(own.from - part.from, own.to - part.from);
    this.rows.source.fill(words(keys, excerpt.keys, view.keys), view.keys.from - excerpt.keys.from, direction(keys), (index) =>
      spoken({ side: "source", index }, from[index] ?? "", to),
    );
    this.rows.target.fill(words(rows, excerpt.rows, view.rows), view.rows.from - excerpt.rows.from, direction(rows), (index) =>
      spoken({ side: "target", index }, to[index] ?? "", from),
    );
  }

  /** What is pointed at, in every view at once. */
  private look(state: State): void {
    const weights = this.weights;
    const { sheet } = state;
    if (weights === null || sheet === null) return;
    const place = active(state);
    const ramp = this.theme.ramp;
    const own = layer(state);
    if (own !== null) {
      this.map.draw({
        layer: own,
        view: state.view ?? sheet.excerpt,
        far: this.far,
        near: this.near(weights, sheet),
        rows: sheet.rows,
        columns: sheet.keys,
        ramp,
        active: place,
      });
    }
    for (const side of ["source", "target"] as const) {
      this.rows[side].shade(shades(side, place, state.pinned, weights, this.shade), ramp);
    }
    this.paintLegend(ramp);
    const readout = this.element("readout", HTMLElement);
    if (place === null) {
      readout.textContent = "";
      return;
    }
    const target = place.side === "target";
    const [axis, across] = target ? [sheet.rows, sheet.keys] : [sheet.keys, sheet.rows];
    const word = axis[place.index]?.text ?? "";
    const partner = place.partner ?? null;
    const weight = weightAt(weights, place);
    readout.textContent =
      weight === null || partner === null
        ? ""
        : `${isolated(word)} → ${isolated(across[partner]?.text ?? "")}: ${percent(weight)}`;
    if (sheet.coarse) return;
    const view = state.view ?? sheet.excerpt;
    const [part, shown] = target ? [sheet.excerpt.keys, view.keys] : [sheet.excerpt.rows, view.rows];
    const [from, to] = [shown.from - part.from, shown.to - part.from];
    const numbers = toward(weights, place).slice(from, to);
    const kind = kindOf(state);
    this.element("distribution-title", HTMLElement).textContent = wording.title(place, word, kind);
    this.element("distribution-note", HTMLElement).textContent = wording.note(place, kind, numbers);
    const dark = darkness(this.shade, place);
    this.bars.draw(across.slice(from, to), numbers, state.order, {
      ramp,
      dark: (weight, index) => dark(weight, index + from),
      partner: partner === null ? null : partner - from,
    });
  }

  /** What the colours say: the numbers under them. */
  private legend(ticks: readonly Tick[]): void {
    const numbers = ticks.map(({ share, text }) => {
      const number = document.createElement("span");
      number.textContent = text;
      number.style.setProperty("--share", `${(share * 100).toFixed(1)}%`);
      return number;
    });
    this.element("ticks", HTMLElement).replaceChildren(...numbers);
  }

  /** The colours of the weights, from the palest to the darkest. */
  private paintLegend(ramp: Ramp): void {
    const canvas = this.element("legend", HTMLCanvasElement);
    const pen = canvas.getContext("2d");
    for (let x = 0; pen !== null && x < canvas.width; x++) {
      pen.fillStyle = css(colour(ramp, x / (canvas.width - 1)));
      pen.fillRect(x, 0, 1, canvas.height);
    }
  }

  /** Say in which language the text of these elements is: fonts and voices depend on it. */
  private speak(ids: readonly string[], language: string | null | undefined): void {
    if (language) ids.forEach((id) => (this.element(id, HTMLElement).lang = language));
  }

  private element<E extends HTMLElement>(id: string, kind: abstract new () => E): E {
    return element(this.root, id, kind);
  }
}

/** The whole map of the head in view, pooled; of a mean only where the overview is exact. */
function far(state: State): Piece | null {
  const shown = layer(state);
  const tile = state.overview?.tiles[state.layer];
  if (shown === null || tile === undefined) return null;
  const exact = tile.rows === shown.queries && tile.keys === shown.keys;
  if (state.head === null && !exact) return null;
  const matrix = state.head === null ? mean(tile) : headOf(tile, state.head);
  return { matrix, excerpt: whole(shown), shade: shading(state.scale, matrix, shown.keys) };
}

function kindOf(state: State): wording.Kind {
  const translated = state.asked !== null;
  return { translated, within: layer(state)?.within ?? false };
}

/** The weights of a place towards the other side. */
function toward(weights: Matrix, place: Place): number[] {
  return place.side === "target" ? row(weights, place.index) : column(weights, place.index);
}

function shades(
  side: Place["side"],
  place: Place | null,
  pinned: Place | null,
  weights: Matrix,
  shade: Shading,
): Shades {
  const own = place?.side === side;
  return {
    weights: place === null || own ? null : toward(weights, place),
    dark: place === null ? () => 0 : darkness(shade, place),
    active: own ? place.index : null,
    pinned: pinned?.side === side ? pinned.index : null,
    partner: place === null || own ? null : (place.partner ?? null),
  };
}

/** How dark the weights of a place are: of one row, or of one in each row. */
function darkness(shade: Shading, place: Place): (weight: number, index: number) => number {
  return (weight, index) => shade(weight, place.side === "target" ? place.index : index);
}
