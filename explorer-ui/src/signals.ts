// Ties the signals of @preact/signals-core to Preact. The hooks of @preact/signals wait for the
// next frame before an effect runs; these run it at once.

import { type Signal, effect, signal } from "@preact/signals-core";
import { type ComponentChildren, type FunctionComponent, Fragment, options } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export function useSignal<T>(value: T): Signal<T> {
  return useState(() => signal(value))[0];
}

/** Do this once the component is on screen, and whenever a signal that it read changes. */
export function useSignalEffect(run: () => void): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => effect(() => latest.current()), []);
}

interface Component extends FunctionComponent {
  tracked?: Component;
}

/** What those around the component that is drawn now hand down to it. */
export let context: unknown;

/** The component, drawn again whenever a signal changes that it read while it was drawn. */
function tracked(component: Component): Component {
  const drawn: Component = (props, around?: unknown) => {
    const again = useState({})[1];
    let content: ReturnType<Component>;
    let first = true;
    context = around;
    const end = effect(() => {
      if (first) content = component(props);
      else again({});
      first = false;
    });
    useLayoutEffect(() => end); // when it is drawn again, or goes
    return content;
  };
  return (drawn.tracked = drawn);
}

/** A component that reads no signals. */
export function untracked<Props>(component: (props: Props) => ComponentChildren) {
  const own = component as FunctionComponent<Props> & Component;
  return (own.tracked = own) as FunctionComponent<Props>;
}
untracked(Fragment);

// Preact says which components are used: each is tracked, but for those of Preact itself.
options.vnode = (vnode) => {
  const type = vnode.type as Component | string;
  if (typeof type === "function") vnode.type = type.tracked ??= tracked(type);
};
