// Each of these writes only what is different: what is written makes the browser lay out and paint.

export function write(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function styled(element: HTMLElement, name: string, value: string): void {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

/** Make these the children of an element; those that stay there are not touched. */
export function arrange(parent: HTMLElement, children: readonly Node[]): void {
  const staying = new Set(children);
  for (const child of [...parent.childNodes]) if (!staying.has(child)) child.remove();
  let place = parent.firstChild;
  for (const child of children) {
    if (child === place) place = place.nextSibling;
    else parent.insertBefore(child, place);
  }
}
