/** Links to a card of an object's page, `?record=...`. */
import { useEffect } from "preact/hooks";

/** Brings the card of a kind before one's eyes once a link asks for it. */
export function useShownFirst(kind: string, isAsked: boolean): void {
  useEffect(() => {
    if (isAsked) document.querySelector(`.record-${kind}`)?.scrollIntoView({ block: "center" });
  }, [kind, isAsked]);
}
