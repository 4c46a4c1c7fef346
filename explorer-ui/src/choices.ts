import { element } from "./element.ts";
import type { Answer } from "./door.ts";
import type { State } from "./state.ts";
import { SCALES, type Scale } from "./scale.ts";
import { listed, statisticName } from "./wording.ts";

/** What the reader can choose of an answer. */
export interface Choosing {
  text(row: number): void;
  layer(index: number): void;
  head(index: number | null): void;
  scale(scale: Scale): void;
  /** By which statistic the heads are marked and, where `sorted`, sorted. */
  mark(statistic: string | null, sorted: boolean): void;
}

/** The lists from which a text of a trace, a layer and a head are chosen. */
export class Choices {
  private readonly text: HTMLSelectElement;
  private readonly layer: HTMLSelectElement;
  private readonly head: HTMLSelectElement;
  private readonly scale: HTMLSelectElement;
  private readonly statistic: HTMLSelectElement;
  private readonly sorted: HTMLInputElement;

  constructor(
    private readonly root: ShadowRoot,
    choosing: Choosing,
  ) {
    this.text = element(root, "text", HTMLSelectElement);
    this.layer = element(root, "layer", HTMLSelectElement);
    this.head = element(root, "head", HTMLSelectElement);
    this.scale = element(root, "scale", HTMLSelectElement);
    this.statistic = element(root, "statistic", HTMLSelectElement);
    this.sorted = element(root, "sorted", HTMLInputElement);
    this.text.addEventListener("change", () => choosing.text(Number(this.text.value)));
    this.layer.addEventListener("change", () => choosing.layer(Number(this.layer.value)));
    this.head.addEventListener("change", () => {
      choosing.head(this.head.value === "" ? null : Number(this.head.value));
    });
    options(this.scale, SCALES);
    this.scale.addEventListener("change", () => choosing.scale(this.scale.value as Scale));
    const marked = () => choosing.mark(this.statistic.value || null, this.sorted.checked);
    this.statistic.addEventListener("change", marked);
    this.sorted.addEventListener("change", marked);
  }

  /** The texts of a trace, by how they begin. */
  offerTexts(texts: readonly string[]): void {
    const named = texts.map((text, row): Item => [String(row), listed(row, text)]);
    options(this.text, named);
    element(this.root, "texts", HTMLElement).hidden = texts.length < 2;
  }

  offerLayers(answer: Answer): void {
    options(
      this.layer,
      answer.layers.map((layer, index) => [String(index), layer.title]),
    );
  }

  /**
   * What is chosen now; where a cell is the largest of several weights, no mean of heads is.
   * Heads are counted from 0, as figures, traces and tables count them.
   */
  show(state: State): void {
    const { answer, sheet, layer, head, overview } = state;
    this.scale.value = state.scale;
    const names = overview?.statistics.names ?? [];
    const known = names.filter((name) => overview?.statistics.layers.some((one) => one[name]));
    options(this.statistic, [["", "nothing"], ...known.map((name): Item => [name, statisticName(name)])]);
    this.statistic.value = state.statistic ?? "";
    this.sorted.checked = state.sorted;
    this.sorted.disabled = state.statistic === null;
    if (answer === null || sheet === null) return;
    const heads = answer.layers[layer]?.heads ?? 0;
    const each = Array.from({ length: heads }, (_, i): Item => [String(i), String(i)]);
    options(this.head, sheet.head === null ? [["", "mean of all"], ...each] : each);
    const shown = sheet.head ?? head;
    this.head.value = shown === null ? "" : String(shown);
    this.layer.value = String(layer);
    element(this.root, "choices", HTMLElement).hidden = answer.layers.length < 2 && heads < 2;
  }
}

type Item = readonly [value: string, text: string];

function options(select: HTMLSelectElement, items: readonly Item[]): void {
  select.replaceChildren(...items.map(([value, text]) => new Option(text, value)));
}
