import { Bars } from "./bars.ts";
import { Heatmap, weightAt } from "./heatmap.ts";
import { type Label, isolated, labels } from "./label.ts";
import { type Matrix, column, largest, row } from "./matrix.ts";
import { colour, css } from "./ramp.ts";
import { percent } from "./share.ts";
import { type Order, type Place, type State, active, matrix } from "./state.ts";
import { type Shades, TokenRow } from "./token-row.ts";
import * as theme from "./theme.ts";
import { absence, note, phrases, signature, summary, title } from "./wording.ts";

/** What the reader can want of the page. */
export interface Wishes {
  translate(text: string): void;
  point(place: Place): void;
  pin(place: Place): void;
  unpin(): void;
  layer(index: number): void;
  head(index: number | null): void;
  order(order: Order): void;
}

/** Shows a state; holds nothing of its own but what it drew last. */
export class Page {
  readonly sentence = element("sentence", HTMLTextAreaElement);
  private readonly rows: { source: TokenRow; target: TokenRow };
  private readonly bars = new Bars(element("bars", HTMLElement));
  private readonly heatmap: Heatmap;
  private shown: State | null = null;
  private weights: Matrix | null = null;
  private most = 0;
  private axes: { source: Label[]; target: Label[] } = { source: [], target: [] };

  constructor(private readonly wishes: Wishes) {
    this.rows = {
      source: new TokenRow(element("source", HTMLElement), "source", wishes),
      target: new TokenRow(element("target", HTMLElement), "target", wishes),
    };
    const canvas = element("heatmap", HTMLCanvasElement);
    const place = (cell: { row: number; column: number }): Place => ({
      side: "target",
      index: cell.row,
      partner: cell.column,
    });
    this.heatmap = new Heatmap(canvas, element("scroll", HTMLElement), {
      point: (cell) => wishes.point(place(cell)),
      pin: (cell) => wishes.pin(place(cell)),
      leave: () => {
        const last = this.shown?.pointed;
        if (last) wishes.point({ side: last.side, index: last.index });
      },
    });
    this.listen();
    theme.whenChanged(() => this.shown && this.look(this.shown));
  }

  show(state: State): void {
    const before = this.shown;
    this.shown = state;
    if (state.model !== before?.model) this.introduce(state);
    this.report(state, before);
    if (state.answer !== before?.answer) this.tell(state);
    if (state.tile !== before?.tile || state.head !== before.head) this.lay(state);
    if (this.weights !== null) this.look(state);
  }

  private listen(): void {
    const form = element("ask", HTMLFormElement);
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
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.wishes.unpin();
    });
    element("layer", HTMLSelectElement).addEventListener("change", (event) => {
      this.wishes.layer(Number((event.target as HTMLSelectElement).value));
    });
    element("head", HTMLSelectElement).addEventListener("change", (event) => {
      const { value } = event.target as HTMLSelectElement;
      this.wishes.head(value === "" ? null : Number(value));
    });
    element("order", HTMLElement).addEventListener("change", (event) => {
      this.wishes.order((event.target as HTMLInputElement).value as Order);
    });
  }

  /** As high as the text in it. */
  grow(): void {
    this.sentence.style.setProperty("height", "auto");
    this.sentence.style.setProperty("height", `${this.sentence.scrollHeight}px`);
  }

  private introduce(state: State): void {
    const facts = state.model?.facts ?? {};
    const items = phrases(facts).map((phrase) => {
      const item = document.createElement("span");
      item.textContent = phrase;
      return item;
    });
    element("facts", HTMLElement).replaceChildren(...items);
    element("facts", HTMLElement).title = signature(facts);
    speak(["translation", "target"], facts.target_language);
    speak(["sentence", "source"], facts.source_language);
  }

  /** What is under way, and what went wrong. */
  private report(state: State, before: State | null): void {
    const { asking, slow, problem, answer } = state;
    const news = asking !== before?.asking || slow !== before.slow || answer !== before.answer;
    if (!news && problem === before.problem) return; // else it would be read aloud once more
    const busy = asking !== null;
    const result = element("result", HTMLElement);
    result.hidden = answer === null && !busy;
    result.classList.toggle("stale", busy && answer !== null);
    element("looking", HTMLElement).classList.toggle("stale", busy);
    element("ask", HTMLElement).classList.toggle("busy", busy);
    const progress = element("progress", HTMLElement);
    progress.hidden = !busy;
    progress.textContent = !busy
      ? ""
      : slow
        ? "Still translating. A long sentence or a large model takes its time…"
        : "Translating…";
    const complaint = element("problem", HTMLElement);
    complaint.hidden = problem === null;
    complaint.textContent = problem?.message ?? "";
    this.sentence.setAttribute("aria-invalid", String(problem !== null));
  }

  private tell(state: State): void {
    const answer = state.answer;
    if (answer === null) return;
    element("translation", HTMLElement).textContent =
      answer.text === "" ? "(The model wrote nothing.)" : answer.text;
    const remarks = [...answer.remarks, absence(answer)].filter((said) => said !== "");
    const remark = element("remark", HTMLElement);
    remark.hidden = remarks.length === 0;
    remark.textContent = remarks.join(" ");
    element("looking", HTMLElement).hidden = state.tile === null;
    options(
      element("layer", HTMLSelectElement),
      answer.layers.map((layer, index) => [String(index), layer.name]),
    );
  }

  /** New weights: new rows of tokens, and a new map. */
  private lay(state: State): void {
    this.weights = matrix(state);
    if (this.weights === null || state.answer === null || state.tile === null) return;
    this.most = largest(this.weights);
    const { answer, tile } = state;
    this.axes = {
      source: labels(answer.source, this.weights.columns),
      target: labels(answer.target, this.weights.rows),
    };
    const { source, target } = this.axes;
    const [from, to] = [source.map((label) => label.text), target.map((label) => label.text)];
    const weights = this.weights;
    this.rows.source.fill(
      source,
      from.map((word, i) => summary({ side: "source", index: i }, word, column(weights, i), to)),
    );
    this.rows.target.fill(
      target,
      to.map((word, i) => summary({ side: "target", index: i }, word, row(weights, i), from)),
    );
    const heads = Array.from({ length: tile.heads }, (_, i): [string, string] => [
      String(i),
      `${i + 1} of ${tile.heads}`,
    ]);
    options(element("head", HTMLSelectElement), [["", "mean of all"], ...heads]);
    element("head", HTMLSelectElement).value = state.head === null ? "" : String(state.head);
    element("layer", HTMLSelectElement).value = String(state.layer);
    show("choices", answer.layers.length > 1 || tile.heads > 1);
    element("heatmap", HTMLElement).setAttribute(
      "aria-label",
      `A map of the weights: ${weights.rows} words of the translation down the side, ` +
        `${weights.columns} source tokens along the top. The rows of words above and the list ` +
        "of numbers beside it say the same.",
    );
  }

  /** What is pointed at, in every view at once. */
  private look(state: State): void {
    const weights = this.weights;
    if (weights === null) return;
    const place = active(state);
    const ramp = theme.ramp();
    const most = this.most;
    this.heatmap.draw({
      matrix: weights,
      rows: this.axes.target,
      columns: this.axes.source,
      largest: most,
      ramp,
      active: place,
    });
    for (const side of ["source", "target"] as const) {
      this.rows[side].shade(shades(side, place, state.pinned, weights, most), ramp);
    }
    legend(most);
    if (place === null) return;
    const own = this.axes[place.side][place.index]?.text ?? "";
    const across = this.axes[place.side === "target" ? "source" : "target"];
    element("distribution-title", HTMLElement).textContent = title(place, own);
    element("distribution-note", HTMLElement).textContent = note(place);
    const partner = place.partner ?? null;
    this.bars.draw(across, toward(weights, place), state.order, { ramp, largest: most, partner });
    const weight = weightAt(weights, place);
    element("readout", HTMLElement).textContent =
      weight === null || partner === null
        ? ""
        : `${isolated(own)} → ${isolated(across[partner]?.text ?? "")}: ${percent(weight)}`;
  }
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
  largest: number,
): Shades {
  const own = place?.side === side;
  return {
    weights: place === null || own ? null : toward(weights, place),
    largest,
    active: own ? place.index : null,
    pinned: pinned?.side === side ? pinned.index : null,
    partner: place === null || own ? null : (place.partner ?? null),
  };
}

/** The colours from 0 to the largest weight of the map. */
function legend(most: number): void {
  const canvas = element("legend", HTMLCanvasElement);
  const pen = canvas.getContext("2d");
  const ramp = theme.ramp();
  for (let x = 0; pen !== null && x < canvas.width; x++) {
    pen.fillStyle = css(colour(ramp, x / (canvas.width - 1)));
    pen.fillRect(x, 0, 1, canvas.height);
  }
  element("most", HTMLElement).textContent = percent(most);
}

function options(select: HTMLSelectElement, items: readonly (readonly [string, string])[]): void {
  select.replaceChildren(...items.map(([value, text]) => new Option(text, value)));
}

function show(id: string, shown: boolean): void {
  element(id, HTMLElement).hidden = !shown;
}

/** Say in which language the text of these elements is: fonts and voices depend on it. */
function speak(ids: readonly string[], language: string | null | undefined): void {
  if (language) ids.forEach((id) => (element(id, HTMLElement).lang = language));
}

function element<E extends HTMLElement>(id: string, kind: abstract new () => E): E {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no #${id}`);
  return found;
}
