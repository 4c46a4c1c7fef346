import type { Address } from "./explorer.ts";
import { mount } from "./mount.ts";
import { Served } from "./served.ts";

/**
 * The address bar. Back goes to what was shown before: not to a page without anything, and not
 * through every step of a part that was moved.
 */
const address: Address = {
  read: () => location.hash,
  write(next) {
    const now = location.hash;
    if (next === "" || next === now) return;
    const moved = (hash: string) => hash.replace(/&[qk]=[^&]*/g, "");
    const first = now === "" || now === "#";
    const onward = !first && !(moved(now) === moved(next) && /&q=/.test(now) && /&q=/.test(next));
    if (onward) history.pushState(null, "", next);
    else history.replaceState(null, "", next);
  },
  whenChanged(follow) {
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  },
};

mount(document.body, new Served(), { address });
