/** The element of an explorer with this id. */
export function element<E extends HTMLElement>(
  root: ShadowRoot,
  id: string,
  kind: abstract new () => E,
): E {
  const found = root.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the explorer has no #${id}`);
  return found;
}
