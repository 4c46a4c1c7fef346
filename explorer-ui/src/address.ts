/** The sentence in the part of an address after "#", so that a link or Back restores it. */
export function written(text: string): string {
  return `#text=${encodeURIComponent(text)}`;
}

/** What `written` wrote; null where there is no sentence, or one that is damaged. */
export function read(hash: string): string | null {
  const match = /^#text=(.+)$/.exec(hash);
  if (match?.[1] === undefined) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return null;
  }
}
