import type { Span } from "./excerpt.ts";
import type { Label } from "./label.ts";
import { type Matrix, hidden } from "./matrix.ts";

/** A name for a file: letters and digits of the title. */
export function fileName(title: string, ending: string): string {
  const words = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return `attlas-${words.slice(0, 80) || "map"}.${ending}`;
}

/** The numbers of the part in view: one line for each weight that a query may have. */
export function csv(
  matrix: Matrix,
  rows: readonly Label[],
  keys: readonly Label[],
  part: { rows: Span; keys: Span },
  start: { row: number; key: number },
): string {
  const lines = ["row,row_token,key,key_token,weight"];
  const token = (label: Label | undefined) => quoted(label?.whole ?? label?.text ?? "");
  for (let i = part.rows.from; i < part.rows.to; i++) {
    for (let j = part.keys.from; j < part.keys.to; j++) {
      if (hidden(matrix, i, j)) continue;
      const weight = matrix.values[i * matrix.columns + j] as number;
      lines.push(`${start.row + i},${token(rows[i])},${start.key + j},${token(keys[j])},${Number(weight.toPrecision(6))}`);
    }
  }
  return `${lines.join("\r\n")}\r\n`;
}

/** A field of CSV, in quotes where it needs them (RFC 4180). */
export function quoted(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
