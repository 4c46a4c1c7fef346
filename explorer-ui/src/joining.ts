import type { Span } from "./excerpt.ts";
import type { Label } from "./label.ts";
import type { Matrix } from "./matrix.ts";

/** What is said of it wherever words are shown in place of pieces. */
export const RULE =
  "Pieces joined to words: over the pieces of a word that is looked at the weights are summed, " +
  "over those of a word that looks their mean is taken.";

// Scripts without spaces: every piece is a word of its own.
const UNSPACED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const PART = /^…/u; // goes on with a character that the token before began

/** The places of each word, in order. */
export function wordSpans(labels: readonly Label[]): Span[] {
  const spans: { from: number; to: number }[] = [];
  labels.forEach((label, index) => {
    const last = spans.at(-1);
    const alone = label.begins || apart(label) || UNSPACED.test(label.text);
    const after = index > 0 && apart(labels[index - 1] as Label);
    if (!last || after || (alone && !PART.test(label.text))) {
      spans.push({ from: index, to: index + 1 });
    } else last.to = index + 1;
  });
  return spans;
}

/** Whether no word goes on here: a mark of the model's own, or signs that cannot be seen, such as ⟨newline⟩. */
function apart({ special, text }: Label): boolean {
  return special || /^⟨.*⟩$/u.test(text);
}

/** Every place as a word of its own. */
export function pieceSpans(count: number): Span[] {
  return Array.from({ length: count }, (_, from) => ({ from, to: from + 1 }));
}

/** One label for each word. */
export function joinedLabels(labels: readonly Label[], spans: readonly Span[]): Label[] {
  return spans.map(({ from, to }) => {
    const own = labels.slice(from, to);
    const [first] = own;
    if (first && own.length === 1) return first;
    // A space of its own that begins the word is no part of it.
    const text = own.map((label) => label.text).join("").replace(/…{2,}|^▁(?=.)/gu, "");
    return { text, begins: true, special: first?.special ?? false };
  });
}

/**
 *     W_ab = mean over i of a, of Σ over j of b, of w_ij
 *
 * A row that may look at nothing counts for no mean; NaN where no piece may look at any.
 */
export function joined(matrix: Matrix, rows: readonly Span[], keys: readonly Span[]): Matrix {
  const values = new Float32Array(rows.length * keys.length);
  const looking = Array.from({ length: matrix.rows }, (_, row) => mayLook(matrix, row));
  rows.forEach((queries, a) => {
    const count = looking.slice(queries.from, queries.to).filter(Boolean).length;
    keys.forEach((places, b) => {
      let [sum, seen] = [0, 0];
      for (let i = queries.from; i < queries.to; i++) {
        for (let j = places.from; j < places.to; j++) {
          const weight = matrix.values[i * matrix.columns + j] as number;
          if (Number.isNaN(weight)) continue;
          [sum, seen] = [sum + weight, seen + 1];
        }
      }
      values[a * keys.length + b] = seen === 0 ? NaN : sum / Math.max(count, 1);
    });
  });
  return { rows: rows.length, columns: keys.length, values };
}

function mayLook({ values, columns }: Matrix, row: number): boolean {
  for (let j = 0; j < columns; j++) if (!Number.isNaN(values[row * columns + j])) return true;
  return false;
}

/** The word in which a place is. */
export function wordAt(spans: readonly Span[], place: number): number {
  let [low, high] = [0, spans.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((spans[middle]?.from ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
