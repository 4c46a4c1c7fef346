/** How one token is shown: its text, and whether it begins a word. */
export interface Label {
  readonly text: string;
  readonly begins: boolean;
  /** A mark of the model's own, such as the end of the sentence: no part of the text. */
  readonly special: boolean;
}

const SPACE = "▁"; // how subword vocabularies write the space before a word
const BYTE = "Ġ"; // how GPT-2 and its kin write the byte of a space; in Maltese it is a letter
const PIECE = "##"; // how WordPiece writes that a token goes on with a word

const SPECIAL = new Map([
  ["<pad>", "⟨padding⟩"],
  ["<unk>", "⟨unknown⟩"],
  ["<s>", "⟨begin⟩"],
  ["</s>", "⟨end⟩"],
]);

/** A label that is a place or several. */
export function numbered(text: string): Label {
  return word(text);
}

/**
 * The tokens on one axis as labels.
 *
 * Where any token carries the mark "▁" (or, in a text of GPT-2's bytes, "Ġ"), the mark says where
 * words begin and is not shown; a token that is nothing but the mark stays visible. WordPiece's "##"
 * says the opposite. Where none carries a mark, every token is a word of its own. An axis without
 * (matching) tokens is numbered, from 0; `first` is the place of the first token.
 */
export function labels(tokens: readonly string[], count: number, first = 0): Label[] {
  if (tokens.length !== count) {
    return Array.from({ length: count }, (_, index) => numbered(String(first + index)));
  }
  const mark = markOf(tokens);
  const pieces = tokens.some((token) => token.startsWith(PIECE) && token !== PIECE);
  return tokens.map((token, index) => {
    const named = SPECIAL.get(token);
    if (named !== undefined) return { text: named, begins: true, special: true };
    if (mark === undefined) return pieces ? piece(token, index) : word(visible(token));
    const begins = index === 0 || token.startsWith(mark);
    const bare = token.startsWith(mark) ? token.slice(mark.length) : token;
    return { text: bare === "" ? SPACE : visible(bare), begins, special: false };
  });
}

/** What stands before the tokens that begin a word, where these tokens have such a mark. */
function markOf(tokens: readonly string[]): string | undefined {
  const carried = (mark: string) => tokens.some((token) => token.startsWith(mark));
  if (carried(SPACE)) return SPACE;
  return carried(BYTE) && bytewise(tokens) ? BYTE : undefined;
}

// The signs of GPT-2's alphabet in the order of UTF-8: what goes on from tokens out of view, then
// ASCII (and a tab, a line feed, a return and a space) or a first byte with those that follow it.
const UTF8 = /^[¡-¬®-¿Ģ-Ń]*(?:[!-~ĉĊčĠ]|[Â-ô][¡-¬®-¿Ģ-Ń]+)*[Â-ô]?$/u;
const ADDED = /^<.*>$|^\s*$/su; // a mark of the model's own, or spaces that are written as they are

/**
 * Whether these tokens spell bytes that are text, as those of GPT-2 and its kin do.
 *
 * Words and subwords with letters beyond ASCII do not: as bytes, they would not be UTF-8.
 */
function bytewise(tokens: readonly string[]): boolean {
  return UTF8.test(tokens.filter((token) => !ADDED.test(token)).join(""));
}

function word(text: string): Label {
  return { text, begins: true, special: false };
}

/** A token of WordPiece's. */
function piece(token: string, index: number): Label {
  const goesOn = token.startsWith(PIECE) && token !== PIECE;
  const text = visible(goesOn ? token.slice(PIECE.length) : token);
  return { text, begins: index === 0 || !goesOn, special: false };
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
