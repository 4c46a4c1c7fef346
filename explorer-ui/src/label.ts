/** How one token is shown: its text, and whether it begins a word. */
export interface Label {
  readonly text: string;
  readonly begins: boolean;
  /** A mark of the model's own, such as the end of the sentence: no part of the text. */
  readonly special: boolean;
}

const SPACE = "▁"; // how subword vocabularies write the space before a word

const SPECIAL = new Map([
  ["<pad>", "⟨padding⟩"],
  ["<unk>", "⟨unknown⟩"],
  ["<s>", "⟨begin⟩"],
  ["</s>", "⟨end⟩"],
]);

/**
 * The tokens on one axis as labels.
 *
 * Where any token carries the mark "▁", the mark says where words begin and is not shown; a token
 * that is nothing but the mark stays visible. Where none carries it, every token is a word of its
 * own. An axis without (matching) tokens is numbered from 1.
 */
export function labels(tokens: readonly string[], count: number): Label[] {
  if (tokens.length !== count) {
    return Array.from({ length: count }, (_, index) => word(String(index + 1)));
  }
  const marked = tokens.some((token) => token.startsWith(SPACE));
  return tokens.map((token, index) => {
    const named = SPECIAL.get(token);
    if (named !== undefined) return { text: named, begins: true, special: true };
    if (!marked) return word(visible(token));
    const begins = index === 0 || token.startsWith(SPACE);
    const bare = token.startsWith(SPACE) ? token.slice(SPACE.length) : token;
    return { text: bare === "" ? SPACE : visible(bare), begins, special: false };
  });
}

function word(text: string): Label {
  return { text, begins: true, special: false };
}

// Hebrew, Arabic, Syriac, Thaana, N'Ko and their kin, in the order of Unicode's blocks.
const RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** The direction in which a sentence is read: that of its first letter. */
export function direction(labels: readonly Label[]): "ltr" | "rtl" {
  const letters = labels.filter((label) => !label.special).map((label) => label.text);
  const first = /\p{L}/u.exec(letters.join(" "))?.[0] ?? "";
  return RIGHT_TO_LEFT.test(first) ? "rtl" : "ltr";
}

/** A text inside of another text, whichever way either of them runs (Unicode's isolates). */
export function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

/** White space that would otherwise be an empty label. */
function visible(text: string): string {
  return text.trim() === "" ? "␣" : text;
}
